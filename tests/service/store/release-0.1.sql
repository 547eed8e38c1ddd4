-- The tables of release 0.1 in PostgreSQL (schema 1), as that release created them.

CREATE TABLE collaborations (
    number BIGSERIAL NOT NULL,
    id TEXT NOT NULL,
    created BIGINT NOT NULL,
    request TEXT,
    PRIMARY KEY (number),
    UNIQUE (id),
    UNIQUE (request)
);

CREATE TABLE meta (
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (key)
);

CREATE TABLE sessions (
    hashed TEXT NOT NULL,
    holder TEXT NOT NULL,
    expires BIGINT NOT NULL,
    PRIMARY KEY (hashed)
);

CREATE INDEX ix_sessions_expires ON sessions (expires);

CREATE TABLE events (
    collaboration TEXT NOT NULL,
    seq BIGINT NOT NULL,
    body BYTEA NOT NULL,
    salt BYTEA NOT NULL,
    head TEXT NOT NULL,
    pull BIGINT,
    PRIMARY KEY (collaboration, seq),
    FOREIGN KEY(collaboration) REFERENCES collaborations (id)
);

CREATE UNIQUE INDEX events_pull ON events (collaboration, pull) WHERE pull IS NOT NULL;

CREATE TABLE invites (
    hashed TEXT NOT NULL,
    id TEXT NOT NULL,
    collaboration TEXT NOT NULL,
    created BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    revoked BOOLEAN NOT NULL,
    PRIMARY KEY (hashed),
    UNIQUE (collaboration, id),
    FOREIGN KEY(collaboration) REFERENCES collaborations (id)
);

CREATE TABLE snapshots (
    collaboration TEXT NOT NULL,
    format TEXT NOT NULL,
    seq BIGINT NOT NULL,
    state BYTEA NOT NULL,
    PRIMARY KEY (collaboration, format),
    FOREIGN KEY(collaboration) REFERENCES collaborations (id)
);

CREATE TABLE tokens (
    hashed TEXT NOT NULL,
    collaboration TEXT NOT NULL,
    agent TEXT NOT NULL,
    PRIMARY KEY (hashed),
    FOREIGN KEY(collaboration) REFERENCES collaborations (id)
);

CREATE FUNCTION events_stay() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'The ledger is append-only.'; END $$;

CREATE TRIGGER events_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON events FOR EACH STATEMENT EXECUTE FUNCTION events_stay();

