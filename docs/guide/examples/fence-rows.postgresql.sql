-- This is for tables in which each row has a lock of its own. Each row keeps the token under which
-- it was written, and a write with an older token is refused. Programs set token = :token in every
-- write.
CREATE FUNCTION pawl_fence_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.token < OLD.token THEN
		RAISE EXCEPTION 'fenced: token % was here, yours is %', OLD.token, NEW.token
			USING ERRCODE = 'PW001';
	END IF;
	RETURN NEW;
END $$;

CREATE TABLE report (
	id text PRIMARY KEY,
	body text NOT NULL,
	token bigint NOT NULL CHECK (token > 0)
);

CREATE TRIGGER report_fence BEFORE UPDATE ON report FOR EACH ROW EXECUTE FUNCTION pawl_fence_row();
