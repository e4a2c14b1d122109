-- +goose Up
-- While programs of 1.0.0 run beside newer ones, their edits have versions, too, and their take-downs are changes.
-- +goose StatementBegin
CREATE FUNCTION count_edit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.taken_down <> NEW.taken_down THEN
        NEW.numbered := 0;
    ELSE
        NEW.version := OLD.version + 1;
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER count_edit BEFORE UPDATE ON links FOR EACH ROW WHEN (
    OLD.version = NEW.version AND OLD.numbered = NEW.numbered AND NEW.former_of IS NULL AND NEW.url <> '' AND
    (OLD.ordinal, OLD.url, OLD.title, OLD.tags, OLD.active, OLD.taken_down, OLD.forward_query, OLD.expires_at, OLD.expired_url,
        OLD.extension, OLD.password_hash)
    IS DISTINCT FROM
    (NEW.ordinal, NEW.url, NEW.title, NEW.tags, NEW.active, NEW.taken_down, NEW.forward_query, NEW.expires_at, NEW.expired_url,
        NEW.extension, NEW.password_hash))
    EXECUTE FUNCTION count_edit();
