package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/mod/sumdb/note"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/internal/store/sqlite"
)

// exportSessions writes some sessions of a log as a part of it.
func (f *flags) exportSessions(c *cobra.Command, dir string, st *sqlite.Store, names, since []string, out string) error {
	ctx := c.Context()
	text, verifier, err := ownKey(dir)
	if err != nil {
		return err
	}
	p := audit.PartOf{Key: text}
	for _, file := range since {
		msg, _, err := readCheckpoint(c, file, verifier)
		if err != nil {
			return err
		}
		p.Older = append(p.Older, msg)
	}
	var ids []string
	for _, name := range names {
		id, err := publicID(ctx, st, dir, name)
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	if p.Items, p.Blobs, err = gateway.GatherSessions(ctx, st, ids...); errors.Is(err, audit.ErrNotFound) {
		return notFound(err)
	} else if err != nil {
		return unreadable(err)
	}
	// After the records were read, so that they are among those it covers.
	snap, msg, head, err := checkpointed(ctx, dir, st, verifier)
	if err != nil {
		return err
	}
	defer snap.Close()
	p.Checkpoint = msg
	var b bytes.Buffer
	switch err := audit.WritePart(&b, snap, p); {
	case errors.Is(err, audit.ErrAltered) && len(since) > 0:
		return cli.Fail(cli.ExitData, "writ audit verify --against FILE", "the log does not go on from that checkpoint")
	case err != nil:
		return unreadable(err)
	}
	if err := writeNew(out, b.Bytes(), "bundle"); err != nil {
		return err
	}
	exported := struct {
		shownCheckpoint
		Records int `json:"records"`
		Bytes   int `json:"bytes"`
	}{shownCheckpoint(head), len(p.Items), b.Len()}
	return f.show(c, exported, func(w io.Writer) {
		fmt.Fprintf(w, "ok: %s, of a log of %d; `writ audit verify --bundle %s` checks them anywhere\n", cli.Number(exported.Records, "record", "records"), head.Size, cli.Printable(out))
	})
}

// verifyBundles is verify of files of writ audit export, and of archives, or directories
// of them: of one that holds a whole log, or of several that hold parts of one.
func verifyBundles(c *cobra.Command, names []string, key string, against []string) (*verifyReport, error) {
	files, err := bundleFiles(names)
	if err != nil {
		return nil, err
	}
	all := parts{key: key, sum: &verifyReport{Report: &audit.Report{}}}
	for _, file := range files {
		in, done, err := openBundle(file)
		if err != nil {
			return nil, err
		}
		defer done()
		start := make([]byte, 64)
		n, _ := in.ReadAt(start, 0)
		switch part := audit.IsPart(start[:n]); {
		case part:
			err = all.verify(c.Context(), file, in)
		case len(files) == 1:
			return verifyBundle(c, file, in, key, against)
		default:
			err = cli.Fail(cli.ExitData, "writ audit verify --bundle FILE", "%s is no part of a log: it is checked by itself", cli.Printable(file))
		}
		if err != nil {
			return nil, err
		}
		if all.sum.Problem != nil {
			return all.sum, nil
		}
	}
	sum, line := all.sum, &all.line
	sum.Key, sum.Parts = all.verifier.Name(), len(files)
	for _, file := range against {
		if err := line.addFile(c, file, all.verifier); err != nil {
			return nil, err
		}
		sum.Against++
	}
	top, file := line.top()
	for c, of := range line.of {
		if c.Size == top.Size && c != top {
			sum.Problem = &audit.Problem{Until: c.Size, Fault: audit.CheckpointRoot, Detail: filepath.Base(of) + ": the key signed two logs of this size"}
			return sum, nil
		}
	}
	if file != "" {
		return nil, cli.Fail(cli.ExitUnproven, "writ audit prove --between "+cli.Printable(file)+" -o PROOF, then --against PROOF",
			"every file is right by itself; that the log of %s goes on to that of the newest, of %d records, nothing shows", cli.Printable(file), top.Size)
	}
	sum.Size, sum.Root, sum.OK = top.Size, top.Root, sum.Skipped == 0
	return sum, nil
}

// bundleFiles are the files that are named: of a directory the archives in it.
func bundleFiles(names []string) (files []string, err error) {
	for _, name := range names {
		fi, err := os.Stat(name)
		if err != nil {
			return nil, unreadBundle()
		}
		if !fi.IsDir() {
			files = append(files, name)
			continue
		}
		before := len(files)
		in, err := os.ReadDir(name)
		for _, file := range in {
			path := filepath.Join(name, file.Name())
			if filepath.Ext(path) != ".writ" {
				continue
			}
			if fi, err := os.Stat(path); err != nil || !fi.Mode().IsRegular() { // a pipe would be waited for
				return nil, cli.Fail(cli.ExitIO, "ls -l "+private.Quote(path), "%s is no file that can be read", cli.Printable(path))
			}
			files = append(files, path)
		}
		if err != nil || len(files) == before {
			return nil, cli.Fail(cli.ExitIO, "writ audit verify --bundle FILE", "no archive is in %s", cli.Printable(name))
		}
	}
	return files, nil
}

func unreadBundle() error {
	return cli.Fail(cli.ExitIO, "writ audit verify --bundle FILE", "the bundle cannot be read")
}

// openBundle opens a file to be read at any place: of a pipe all that comes.
func openBundle(file string) (in *io.SectionReader, done func() error, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, unreadBundle()
	}
	if fi, err := f.Stat(); err == nil && fi.Mode().IsRegular() {
		return io.NewSectionReader(f, 0, fi.Size()), f.Close, nil
	}
	b, err := io.ReadAll(f)
	if err != nil {
		f.Close()
		return nil, nil, unreadBundle()
	}
	return io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b))), f.Close, nil
}

// parts is what was found in parts of one log.
type parts struct {
	key      string        // the file of the log's, "" where what the first part says is believed
	verifier note.Verifier // of all of them
	line     lineage
	sum      *verifyReport
}

// verify verifies one more of them.
func (all *parts) verify(ctx context.Context, file string, in io.Reader) error {
	raw, err := io.ReadAll(in)
	if err != nil {
		return unreadBundle()
	}
	p, err := audit.ReadPart(raw)
	if err != nil {
		return cli.Fail(cli.ExitData, "another copy of it", "%s: %w", cli.Printable(file), err)
	}
	if all.verifier == nil {
		if all.verifier, err = givenKey(all.key, file, p.Key); err != nil {
			return err
		}
	}
	if newest, older, err := p.Checkpoints(all.verifier); err == nil { // else it is what is found below
		all.line.add(file, newest, older...)
	}
	rep, err := decidedAgain(ctx, func(o audit.VerifyOptions) (*audit.Report, error) { return audit.VerifyPart(ctx, p, o) },
		p, p, audit.VerifyOptions{Verifier: all.verifier}, func(int64) {})
	if err != nil {
		return unreadable(err)
	}
	if all.sum.add(rep); rep.Problem != nil {
		rep.Problem.Detail = filepath.Base(file) + ": " + rep.Problem.Detail
	}
	return nil
}

// add adds up what was found in another part.
func (r *verifyReport) add(o *verifyReport) {
	for _, n := range [][2]*int64{{&r.Records, &o.Records}, {&r.Sessions, &o.Sessions}, {&r.Decisions, &o.Decisions}, {&r.Accepted, &o.Accepted},
		{&r.Rejected, &o.Rejected}, {&r.Shadowed, &o.Shadowed}, {&r.Results, &o.Results}, {&r.Undone, &o.Undone}, {&r.Values, &o.Values},
		{&r.Erased, &o.Erased}, {&r.Blobs, &o.Blobs}, {&r.Checkpoints, &o.Checkpoints}} {
		*n[0] += *n[1]
	}
	r.Signed = max(r.Signed, o.Signed)
	r.Tally.Add(o.Tally)
	r.Problem = o.Problem
}

// lineage is which checkpoints of a log are known, each with the file it is of, and which
// of them go on from which.
type lineage struct {
	of     map[audit.Checkpoint]string
	before map[audit.Checkpoint][]audit.Checkpoint
}

func (g *lineage) add(file string, newest audit.Checkpoint, older ...audit.Checkpoint) {
	if g.of == nil {
		g.of, g.before = map[audit.Checkpoint]string{}, map[audit.Checkpoint][]audit.Checkpoint{}
	}
	for _, c := range append(older, newest) {
		if g.of[c] == "" || c == newest {
			g.of[c] = file
		}
	}
	g.before[newest] = append(g.before[newest], older...)
}

// addFile adds a checkpoint that was kept elsewhere, or the proof that one goes on from
// another.
func (g *lineage) addFile(c *cobra.Command, file string, v note.Verifier) error {
	if b, err := os.ReadFile(file); err == nil {
		if p, err := audit.CheckProof(b, v); err == nil && len(p.Records) == 0 {
			g.add(file, p.Checkpoint, p.Older)
			return nil
		}
	}
	_, known, err := readCheckpoint(c, file, v)
	if err == nil {
		g.add(file, known)
	}
	return err
}

// top is the newest checkpoint; file is one of whose checkpoint it is not shown that the
// log went on from it to that, "" where there is none.
func (g *lineage) top() (top audit.Checkpoint, file string) {
	for c := range g.of {
		if c.Size > top.Size || c.Size == top.Size && c.Root.String() > top.Root.String() {
			top = c
		}
	}
	reached := map[audit.Checkpoint]bool{top: true}
	for next := []audit.Checkpoint{top}; len(next) > 0; next = next[1:] {
		for _, c := range g.before[next[0]] {
			if !reached[c] {
				reached[c] = true
				next = append(next, c)
			}
		}
	}
	var missing audit.Checkpoint
	for c, of := range g.of {
		if !reached[c] && (file == "" || c.Size > missing.Size || c.Size == missing.Size && of < file) {
			missing, file = c, of
		}
	}
	return top, file
}
