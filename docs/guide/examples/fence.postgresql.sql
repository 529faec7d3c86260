-- The highest tokens seen, by the name of the lock. Load it once; then every transaction begins with
--     SELECT pawl_fence('ledger', :token);
-- and is refused as a whole when somebody with a newer lock was here before.
CREATE TABLE pawl_fence (
	name text PRIMARY KEY,
	writer bigint NOT NULL, -- the highest token of an exclusive lock
	highest bigint NOT NULL -- of any
);

-- The row stays locked until the transaction ends: whoever comes with another token waits for that, and is judged afterwards.
CREATE FUNCTION pawl_fence(lock_name text, token bigint, shared boolean DEFAULT false) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO pawl_fence AS seen VALUES (lock_name, CASE WHEN shared THEN 0 ELSE token END, token)
	ON CONFLICT (name) DO UPDATE
		SET writer = greatest(seen.writer, EXCLUDED.writer), highest = greatest(seen.highest, EXCLUDED.highest)
		WHERE token >= CASE WHEN shared THEN seen.writer ELSE seen.highest END;
	IF NOT FOUND OR token <= 0 OR token IS NULL THEN
		RAISE EXCEPTION 'fenced: somebody newer than token % of % was here', token, lock_name USING ERRCODE = 'PW001';
	END IF;
END $$;
