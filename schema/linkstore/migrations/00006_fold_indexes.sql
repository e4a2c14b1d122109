-- +goose Up
-- A migration of its own, because links are read while their indexes are made, and not while columns are added.
CREATE INDEX links_folded ON links (account_id, ordinal) WHERE folded_url IS NOT NULL OR folded_title IS NOT NULL;
CREATE INDEX links_to_fold ON links (id)
WHERE (folded_url IS NULL AND (octet_length(url) > length(url) OR {find}(lower(url), 'xn--') > 0)
    OR folded_title IS NULL AND octet_length(title) > length(title));
