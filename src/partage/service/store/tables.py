"""The tables, the same in both databases, and the migrations of older databases."""

from collections.abc import Callable, Sequence

import sqlalchemy as sa

everything = sa.MetaData()

meta = sa.Table(
    "meta",
    everything,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

collaborations = sa.Table(
    "collaborations",
    everything,
    # SQLite numbers its rows only if the key is a plain INTEGER.
    sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("request", sa.Text, unique=True),
)


def _of_a_collaboration() -> sa.Column[str]:
    return sa.Column("collaboration", sa.Text, sa.ForeignKey("collaborations.id"), nullable=False)


events = sa.Table(
    "events",
    everything,
    _of_a_collaboration(),
    sa.Column("seq", sa.BigInteger, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("salt", sa.LargeBinary, nullable=False),
    sa.Column("head", sa.Text, nullable=False),
    sa.Column("pull", sa.BigInteger),
    sa.PrimaryKeyConstraint("collaboration", "seq"),
    sqlite_with_rowid=False,  # keeps a collaboration's rows together, in the order in which they are read
)

# Only for rows that report a pull. Most do not, which makes every commit shorter.
sa.Index(
    "events_pull",
    events.c.collaboration,
    events.c.pull,
    unique=True,
    sqlite_where=events.c.pull.is_not(None),
    postgresql_where=events.c.pull.is_not(None),
)

snapshots = sa.Table(
    "snapshots",
    everything,
    _of_a_collaboration(),
    sa.Column("format", sa.Text, nullable=False),
    sa.Column("seq", sa.BigInteger, nullable=False),
    sa.Column("state", sa.LargeBinary, nullable=False),
    sa.PrimaryKeyConstraint("collaboration", "format"),
)

invites = sa.Table(
    "invites",
    everything,
    sa.Column("hashed", sa.Text, primary_key=True),
    sa.Column("id", sa.Text, nullable=False),
    _of_a_collaboration(),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("expires", sa.BigInteger, nullable=False),
    sa.Column("revoked", sa.Boolean, nullable=False),
    sa.UniqueConstraint("collaboration", "id"),
)

tokens = sa.Table(
    "tokens",
    everything,
    sa.Column("hashed", sa.Text, primary_key=True),
    _of_a_collaboration(),
    sa.Column("agent", sa.Text, nullable=False),
    sa.Column("epoch", sa.BigInteger, nullable=False, server_default="0"),  # which of the agent's tokens it is
)

# The last row of each ledger, apart from the rows: a ledger that lost rows is noticed.
heads = sa.Table(
    "heads",
    everything,
    sa.Column("collaboration", sa.Text, sa.ForeignKey("collaborations.id"), primary_key=True),
    sa.Column("seq", sa.BigInteger, nullable=False),
    sa.Column("head", sa.Text, nullable=False),
)

# The newest checkpoint that each member cosigned, for the others to read.
cosignatures = sa.Table(
    "cosignatures",
    everything,
    _of_a_collaboration(),
    sa.Column("agent", sa.Text, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("note", sa.Text, nullable=False),
    sa.PrimaryKeyConstraint("collaboration", "agent"),
)

sessions = sa.Table(
    "sessions",
    everything,
    sa.Column("hashed", sa.Text, primary_key=True),
    sa.Column("holder", sa.Text, nullable=False),
    sa.Column("expires", sa.BigInteger, nullable=False, index=True),
)

# The ledger is append-only: an operator can drop these triggers, but cannot change a row by accident.
KEEP_EVENTS = {
    "sqlite": [
        f"CREATE TRIGGER events_no_{change} BEFORE {change} ON events "
        "BEGIN SELECT RAISE(ABORT, 'The ledger is append-only.'); END"
        for change in ("UPDATE", "DELETE")
    ],
    "postgresql": [
        "CREATE FUNCTION events_stay() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'The ledger is append-only.'; END $$",
        "CREATE TRIGGER events_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON events "
        "FOR EACH STATEMENT EXECUTE FUNCTION events_stay()",
    ],
}


def _new_rows(_: sa.Connection) -> None:
    """Change no table: release 0.1 cannot read the rows of format 2, and refuses a database of schema 2."""


def _heads_and_cosignatures(connection: sa.Connection) -> None:
    """Add the tables of schema 3, with the head of each ledger as it is, and the epoch of each token."""
    heads.create(connection)
    cosignatures.create(connection)
    connection.exec_driver_sql("ALTER TABLE tokens ADD COLUMN epoch BIGINT NOT NULL DEFAULT 0")
    connection.exec_driver_sql(
        "INSERT INTO heads (collaboration, seq, head) SELECT collaboration, seq, head FROM events AS one "
        "WHERE seq = (SELECT max(seq) FROM events WHERE collaboration = one.collaboration)"
    )


# The steps from schema 1 to 2, from 2 to 3, and so on; a new database starts at the last. Never change a step that
# has been released: add one, and change the tables above to match.
MIGRATIONS: Sequence[Callable[[sa.Connection], None]] = (_new_rows, _heads_and_cosignatures)


class WrongSchema(Exception):
    """The tables are not those of this Partage. The argument ends a sentence that begins with the database."""


def bring_up_to_date(connection: sa.Connection) -> None:
    """Create the tables, or migrate them from an older schema, inside the caller's transaction.

    The caller ensures that no other process does this at the same time.
    """
    newest = 1 + len(MIGRATIONS)
    if not sa.inspect(connection).has_table("meta"):
        # This fails, as it should, if there are tables of these names that are not ours.
        everything.create_all(connection, checkfirst=False)
        for statement in KEEP_EVENTS[connection.dialect.name]:
            connection.exec_driver_sql(statement)
        connection.execute(meta.insert().values(key="schema", value=str(newest)))
        return
    found = connection.execute(sa.select(meta.c.value).where(meta.c.key == "schema")).scalar()
    if found is None or not str(found).isdecimal():
        raise WrongSchema("holds tables that are not Partage's; use an empty database")
    number = int(found)
    if number > newest:
        raise WrongSchema(
            f"was written by a newer Partage: its schema is number {number}, and this one knows up to {newest}; "
            "install the newer Partage"
        )
    for step in MIGRATIONS[number - 1 :]:
        step(connection)
    connection.execute(meta.update().where(meta.c.key == "schema").values(value=str(newest)))
