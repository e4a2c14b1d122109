-- +goose Up
-- What makes up half of the cost of a new link:
LOCK TABLE accounts, links; -- in the order of statements that create links
-- Every statement that creates links locks the row of their account, and creates none without it. Accounts are not deleted: a trigger
-- sees to it, once per account instead of once per link.
ALTER TABLE links DROP CONSTRAINT links_account_id_fkey;
-- +goose StatementBegin
CREATE FUNCTION keep_owner() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'account % has links', OLD.id USING ERRCODE = 'foreign_key_violation';
END $$;
-- +goose StatementEnd
CREATE TRIGGER keep_owner BEFORE DELETE ON accounts FOR EACH ROW WHEN (OLD.link_count > 0) EXECUTE FUNCTION keep_owner();

DROP INDEX links_of_account; -- the index of domains and hashes finds the links of an account, too: see ownedLink
