-- +goose Up
-- There is no topic, so nothing has a position.
DROP TABLE positions;
