-- This table has the highest tokens seen, by the name of the lock. Load this file once. Then begin
-- every transaction with the statement that writes to this table, as in ledger.sqlite.py.
-- RAISE(ROLLBACK) ends the whole transaction: a program must stop there, and must not execute the
-- statements that would follow.
CREATE TABLE pawl_fence (
	name TEXT PRIMARY KEY,
	token INTEGER NOT NULL CHECK (token > 0)
) WITHOUT ROWID;

CREATE TRIGGER pawl_fence_older BEFORE UPDATE ON pawl_fence WHEN NEW.token < OLD.token
BEGIN
	SELECT RAISE(ROLLBACK, 'fenced: somebody newer was here');
END;
