"""The fixtures themselves: the databases are separate and durable, and the browser reports the errors of a page."""

import asyncio

import pytest
import sqlalchemy as sa
from sqlalchemy.pool import NullPool
from tests.support.patience import PATIENCE


def _ask(url, statement):
    engine = sa.create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        found = connection.execute(sa.text(statement))
        return found.scalar() if found.returns_rows else None


def test_a_wait_ends_before_its_test_is_ended(pytestconfig):
    assert float(pytestconfig.getini("timeout")) > 4 * PATIENCE


def test_a_database_answers(database_url):
    assert _ask(database_url, "SELECT 1") == 1


@pytest.mark.parametrize("time", [1, 2])
def test_a_database_starts_empty_each_time(database_url, time):
    engine = sa.create_engine(database_url, poolclass=NullPool)
    assert sa.inspect(engine).get_table_names() == []
    _ask(database_url, "CREATE TABLE seen (it INTEGER)")
    assert sa.inspect(engine).get_table_names() == ["seen"]


def test_two_databases_of_a_cluster_are_separate(postgres):
    with postgres.database() as one, postgres.database() as other:
        _ask(one, "CREATE TABLE here (it INTEGER)")
        assert _ask(one, "SELECT to_regclass('here')") == "here"
        assert _ask(other, "SELECT to_regclass('here')") is None


def test_a_database_is_dropped_even_while_somebody_is_connected(postgres):
    with postgres.database() as url:
        engine = sa.create_engine(url, poolclass=NullPool)
        connection = engine.connect()
        name = connection.execute(sa.text("SELECT current_database()")).scalar()
        connection.commit()
    connection.invalidate()
    connection.close()
    databases = f"SELECT count(*) FROM pg_database WHERE datname = '{name}'"
    assert _ask(postgres.url("postgres"), databases) == 0


def test_the_cluster_is_durable_and_listens_only_on_its_socket(postgres, postgres_url):
    settings = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "listen_addresses": ""}
    assert {name: _ask(postgres_url, f"SHOW {name}") for name in settings} == settings
    assert len(f"{postgres.folder}/.s.PGSQL.5432") < 100


def test_the_cluster_recovers_from_a_crash(postgres, postgres_url):
    _ask(postgres_url, "CREATE TABLE kept (it INTEGER)")
    _ask(postgres_url, "INSERT INTO kept VALUES (7)")
    postgres.stop("immediate")
    postgres.start()
    assert _ask(postgres_url, "SELECT it FROM kept") == 7


def test_the_browser_renders_a_page(page):
    page.set_content("<h1>Pens</h1><script>document.querySelector('h1').textContent += ' and paper'</script>")
    assert page.get_by_role("heading").inner_text() == "Pens and paper"
    page.goto("data:text/html,<title>board</title>")
    assert page.title() == "board"


def test_errors_of_a_page_are_recorded(page, page_errors):
    with page.expect_event("pageerror"):
        page.set_content("<script>console.error('first'); throw new Error('second')</script>")
    assert len(page_errors) == 2
    assert "first" in page_errors[0]
    assert "second" in page_errors[1]
    page_errors.clear()


def test_contexts_of_the_browser_are_separate(chromium):
    assert chromium.contexts == []
    for _ in range(2):
        chromium.new_context().new_page()
    assert len(chromium.contexts) == 2


@pytest.mark.usefixtures("_launched")
def test_an_event_loop_runs_while_the_browser_is_open():
    async def one():
        return 1

    assert asyncio.run(one()) == 1


def test_the_browser_still_works_afterwards(page):
    page.set_content("<p>still here</p>")
    assert page.locator("p").inner_text() == "still here"
