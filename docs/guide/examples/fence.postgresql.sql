-- This table has the highest tokens seen, by the name of the lock. Load this file once. Then begin
-- every transaction with
--     SELECT pawl_fence('ledger', :token);
-- If somebody with a newer lock was here before, the whole transaction is refused.
CREATE TABLE pawl_fence (
	name text PRIMARY KEY,
	writer bigint NOT NULL, -- the highest token of an exclusive lock
	highest bigint NOT NULL -- the highest token of any lock
);

-- The row stays locked until the transaction ends: another transaction waits for that before its
-- token is checked.
CREATE FUNCTION pawl_fence(lock_name text, token bigint, shared boolean DEFAULT false)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO pawl_fence AS seen
		VALUES (lock_name, CASE WHEN shared THEN 0 ELSE token END, token)
	ON CONFLICT (name) DO UPDATE
		SET writer = greatest(seen.writer, EXCLUDED.writer),
			highest = greatest(seen.highest, EXCLUDED.highest)
		WHERE token >= CASE WHEN shared THEN seen.writer ELSE seen.highest END;
	IF NOT FOUND OR token <= 0 OR token IS NULL THEN
		RAISE EXCEPTION 'fenced: somebody newer than token % of % was here',
			token, lock_name USING ERRCODE = 'PW001';
	END IF;
END $$;
