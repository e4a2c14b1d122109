-- +goose Up
-- Files of the edges' certificates, encrypted by the edges. A key is a path.
CREATE TABLE certificate_files (
    key         text COLLATE "C" PRIMARY KEY,
    value       bytea       NOT NULL,
    modified_at timestamptz NOT NULL
);

-- Who is getting a certificate.
CREATE TABLE certificate_locks (
    name       text        PRIMARY KEY,
    holder     text        NOT NULL,
    expires_at timestamptz NOT NULL
);

CREATE TABLE certificate_states (
    host         text        PRIMARY KEY,
    expires_at   timestamptz, -- of the certificate; NULL: there never was one
    attempted_at timestamptz NOT NULL,
    error        text        NOT NULL -- of the last attempt
);
