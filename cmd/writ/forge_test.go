package main

import (
	"database/sql"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/mod/sumdb/note"
	_ "modernc.org/sqlite"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/statedir"
	"github.com/writ-project/writ/internal/store/sqlite"
)

// sqlScript changes the log in a state directory as anybody with a SQLite shell
// can: sql DIR STATEMENT …
func sqlScript(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: sql DIR STATEMENT …")
	}
	editLog(ts, args[0], func(db *sql.DB) {
		for _, q := range args[1:] {
			_, err := db.Exec(q)
			ts.Check(err)
		}
	})
}

// rehashScript makes all hashes of the log anew, as anybody without its key
// can: rehash DIR. With -sign it signs the result with the log's key, as an
// older Writ may have: rehash -sign DIR.
func rehashScript(ts *testscript.TestScript, neg bool, args []string) {
	sign := len(args) == 2 && args[0] == "-sign"
	if sign {
		args = args[1:]
	}
	if len(args) != 1 {
		ts.Fatalf("usage: rehash [-sign] DIR")
	}
	editLog(ts, args[0], func(db *sql.DB) {
		var tree audit.Tree
		rows, err := db.Query("SELECT idx, leaf FROM leaves ORDER BY idx")
		ts.Check(err)
		hashes := map[int64][]byte{}
		for rows.Next() {
			var idx int64
			var leaf []byte
			ts.Check(rows.Scan(&idx, &leaf))
			for _, h := range tree.Append(leaf) {
				hashes[idx] = append(hashes[idx], h[:]...)
			}
		}
		ts.Check(rows.Err())
		for idx, b := range hashes {
			_, err := db.Exec("UPDATE leaves SET hashes = ? WHERE idx = ?", b, idx)
			ts.Check(err)
		}
		root := tree.Root()
		_, err = db.Exec("UPDATE head SET size = ?, root = ?", tree.Size(), root[:])
		ts.Check(err)
		if sign {
			skey, err := os.ReadFile(filepath.Join(ts.MkAbs(args[0]), statedir.KeyFile))
			ts.Check(err)
			signer, _, _, err := statedir.ParseKey(skey)
			ts.Check(err)
			var n []byte
			n, err = audit.SignCheckpoint(tree.Size(), root, note.Signer(signer))
			ts.Check(err)
			_, err = db.Exec("UPDATE head SET note = ?; DELETE FROM checkpoints; DELETE FROM heads", n)
			ts.Check(err)
		}
	})
}

func editLog(ts *testscript.TestScript, dir string, edit func(*sql.DB)) {
	db, err := sql.Open("sqlite", filepath.Join(ts.MkAbs(dir), sqlite.FileName)+"?_pragma=busy_timeout(10000)")
	ts.Check(err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	_, err = db.Exec("PRAGMA foreign_keys = 0")
	ts.Check(err)
	edit(db)
	_, err = db.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
	ts.Check(err)
}
