package sqlite

// applicationID marks the file as Writ's ("WRIT").
const applicationID = 0x57524954

// migrations[i] brings a file from schema version i to i+1. They are run in
// one transaction each, together with the version, and never changed once
// released.
//
// The stored hashes of a leaf stand in its own row, lowest first, because the
// leaf and its hashes are written and verified together. head has the signed
// checkpoint of what the database holds (the journal has those of what came after);
// checkpoints keeps one of each so many records.
// heads has how many records each session had at some size (audit.SignHeads).
var migrations = []string{`
CREATE TABLE head (
	id     INTEGER PRIMARY KEY CHECK (id = 1),
	size   INTEGER NOT NULL,
	root   BLOB NOT NULL CHECK (length(root) = 32),
	signed INTEGER NOT NULL
) STRICT;
CREATE TABLE leaves (
	idx     INTEGER PRIMARY KEY,
	session TEXT NOT NULL,
	n       INTEGER NOT NULL,
	leaf    BLOB NOT NULL,
	hashes  BLOB NOT NULL,
	UNIQUE (session, n)
) STRICT;
CREATE TABLE vals (
	idx   INTEGER NOT NULL REFERENCES leaves (idx),
	name  TEXT NOT NULL,
	salt  BLOB NOT NULL,
	bytes BLOB NOT NULL,
	PRIMARY KEY (idx, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE blobs (
	name  BLOB PRIMARY KEY,
	bytes BLOB NOT NULL
) STRICT;
CREATE TABLE checkpoints (
	size INTEGER PRIMARY KEY,
	note BLOB NOT NULL
) STRICT;
CREATE TABLE sessions (
	id         TEXT PRIMARY KEY,
	secret     BLOB NOT NULL UNIQUE CHECK (length(secret) = 32),
	principal  TEXT NOT NULL,
	endpoint   TEXT NOT NULL,
	ledger_key BLOB NOT NULL CHECK (length(ledger_key) = 32),
	created    INTEGER NOT NULL,
	last_used  INTEGER,
	closed     INTEGER
) STRICT, WITHOUT ROWID;
`, `
ALTER TABLE head ADD COLUMN note BLOB NOT NULL DEFAULT x'';
UPDATE head SET note = coalesce((SELECT note FROM checkpoints WHERE size = head.size), x'');
CREATE TABLE heads (
	id   INTEGER PRIMARY KEY CHECK (id = 1),
	body BLOB NOT NULL,
	note BLOB NOT NULL
) STRICT;
`, `
-- From here on the newest records are in the journal.
SELECT 1;
`}

// headColumns reads the head in a file of each version. Version 1 signed only
// now and then.
var headColumns = []string{1: `size, root, signed, coalesce((SELECT note FROM checkpoints WHERE size = head.size), x'')`, 2: signedHead, 3: signedHead}

const signedHead = "size, root, signed, note"
