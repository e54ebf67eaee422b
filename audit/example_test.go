package audit_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"time"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/storetest/mapstore"
	"golang.org/x/mod/sumdb/note"
)

// One session is recorded, signed, verified, and verified again after a value
// was erased.
func Example() {
	// Keys and salts come from crypto/rand; the example has fixed ones.
	random := bytes.NewReader(bytes.Repeat([]byte("not random"), 100))
	skey, vkey, err := audit.GenerateKey(random, "writ.example/log")
	if err != nil {
		log.Fatal(err)
	}
	signer, _ := note.NewSigner(skey)
	verifier, _ := note.NewVerifier(vkey)
	ctx := context.Background()
	store := mapstore.New(signer)
	at := time.Date(2026, 11, 21, 15, 0, 0, 1, time.UTC)

	open, err := audit.Seal(audit.Record{Kind: audit.KindOpen, Session: "s_7Q", N: 1, Time: at})
	if err != nil {
		log.Fatal(err)
	}
	arguments := audit.Value{Name: "arguments", Bytes: []byte(`{"path":"/srv/a"}`)}
	random.Read(arguments.Salt[:])
	decision, err := audit.Seal(audit.Record{
		Kind: audit.KindDecision, Session: "s_7Q", N: 2, Time: at,
		Data: []byte(`{"tool": "files/list", "status": "accepted"}`),
	}, arguments)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", open.Leaf())

	if _, err := store.Append(ctx, "s_7Q", 0, []audit.Entry{open, decision}); err != nil {
		log.Fatal(err)
	}
	_, err = store.Append(ctx, "s_7Q", 0, []audit.Entry{open})
	fmt.Println(err)

	msg, _ := store.Checkpoint(ctx)
	c, err := audit.OpenCheckpoint(msg, verifier)
	fmt.Println(c.Origin, c.Size, err)

	verify := func() {
		s, err := store.Snapshot(ctx)
		if err != nil {
			log.Fatal(err)
		}
		defer s.Close()
		r, err := audit.Verify(ctx, s, audit.VerifyOptions{Verifier: verifier, Known: []audit.Checkpoint{c}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.Records, "records,", r.Signed, "signed,", r.Values, "values,", r.Erased, "erased, problem:", r.Problem != nil)
	}
	verify()
	if err := store.Erase(ctx, "s_7Q", 2); err != nil {
		log.Fatal(err)
	}
	verify()
	// Output:
	// {"commit":{},"data":{},"kind":"open","n":1,"session":"s_7Q","time":"2026-11-21T15:00:00.000000001Z","v":1}
	// audit: the session has moved on
	// writ.example/log 2 <nil>
	// 2 records, 2 signed, 1 values, 0 erased, problem: false
	// 2 records, 2 signed, 0 values, 1 erased, problem: false
}
