-- Another way, for tables whose rows are protected one by one: each row keeps the token of the lock that it was written under, and
-- an older one does not change it. Programs write token = :token with everything that they write.
CREATE FUNCTION pawl_fence_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.token < OLD.token THEN
		RAISE EXCEPTION 'fenced: token % was here, yours is %', OLD.token, NEW.token USING ERRCODE = 'PW001';
	END IF;
	RETURN NEW;
END $$;

CREATE TABLE report (id text PRIMARY KEY, body text NOT NULL, token bigint NOT NULL CHECK (token > 0));

CREATE TRIGGER report_fence BEFORE UPDATE ON report FOR EACH ROW EXECUTE FUNCTION pawl_fence_row();
