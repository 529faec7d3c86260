-- psql -v ON_ERROR_STOP=1 -v token="$PAWL_TOKEN" -v line='...' -f ledger.postgresql.sql
BEGIN;
SELECT pawl_fence('ledger', :token);
INSERT INTO ledger (line) VALUES (:'line');
COMMIT;
