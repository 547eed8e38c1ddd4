"""The data files of a study."""

import polars as pl
from tests.studies.test_studies import play, small

from partage.report.csv_and_parquet import table, write_tables


def test_both_files_contain_the_results(tmp_path):
    (played,) = play(small(checkpoints=(5, 50)), runs=8, seed=2)
    csv, parquet = write_tables(played, tmp_path)
    frame = pl.read_parquet(parquet)
    assert frame.equals(table(played))
    assert pl.read_csv(csv, schema=frame.schema).equals(frame)
    (row,) = frame.filter(figure="overall_regret", agents=6).rows(named=True)
    assert (row["mean"], row["stderr"]) == played.result(6).overall_regret
    assert (row["step"], row["runs"], row["seed"]) == (2000, 8, 2)
    over_time = frame.filter(figure="two_ucb_regret_up_to", agents=30, step=50)
    assert over_time["mean"].item() == played.alone(30).curve[1].mean
