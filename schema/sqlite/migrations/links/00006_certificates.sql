-- +goose Up
-- Files of the edges' certificates, encrypted by the edges. A key is a path.
CREATE TABLE certificate_files (
    key         TEXT    NOT NULL PRIMARY KEY,
    value       BLOB    NOT NULL,
    modified_at INTEGER NOT NULL
) STRICT;

-- Who is getting a certificate.
CREATE TABLE certificate_locks (
    name       TEXT    NOT NULL PRIMARY KEY,
    holder     TEXT    NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE certificate_states (
    host         TEXT    NOT NULL PRIMARY KEY,
    expires_at   INTEGER, -- of the certificate; NULL: there never was one
    attempted_at INTEGER NOT NULL,
    error        TEXT    NOT NULL -- of the last attempt
) STRICT, WITHOUT ROWID;
