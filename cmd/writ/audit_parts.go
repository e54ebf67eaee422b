package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

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
	text, err := logKeyText(dir, "")
	if err != nil {
		return err
	}
	verifier, err := parseVerifier(dir, text)
	if err != nil {
		return err
	}
	p := audit.PartOf{Key: strings.TrimSpace(string(text))}
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
	unread := cli.Fail(cli.ExitIO, "writ audit verify --bundle FILE", "the bundle cannot be read")
	var files []string
	for _, name := range names {
		fi, err := os.Stat(name)
		if err != nil {
			return nil, unread
		}
		if fi.IsDir() {
			before := len(files)
			in, err := os.ReadDir(name)
			for _, file := range in {
				if path := filepath.Join(name, file.Name()); filepath.Ext(path) == ".writ" {
					if fi, err := os.Stat(path); err != nil || !fi.Mode().IsRegular() { // a pipe would be waited for
						return nil, cli.Fail(cli.ExitIO, "ls -l "+private.Quote(path), "%s is no file that can be read", cli.Printable(path))
					}
					files = append(files, path)
				}
			}
			if err != nil || len(files) == before {
				return nil, cli.Fail(cli.ExitIO, "writ audit verify --bundle FILE", "no archive is in %s", cli.Printable(name))
			}
		} else {
			files = append(files, name)
		}
	}
	line := lineage{}
	sum := &verifyReport{Report: &audit.Report{}}
	var verifier note.Verifier
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return nil, unread
		}
		defer f.Close()
		in, err := seekable(f)
		if err != nil {
			return nil, unread
		}
		start := make([]byte, 64)
		n, _ := in.ReadAt(start, 0)
		if !audit.IsPart(start[:n]) {
			if len(files) == 1 {
				return verifyBundle(c, file, in, key, against)
			}
			return nil, cli.Fail(cli.ExitData, "writ audit verify --bundle FILE", "%s is no part of a log: it is checked by itself", cli.Printable(file))
		}
		raw, err := io.ReadAll(in)
		if err != nil {
			return nil, unread
		}
		p, err := audit.ReadPart(raw)
		if err != nil {
			return nil, cli.Fail(cli.ExitData, "another copy of it", "%s: %w", cli.Printable(file), err)
		}
		if verifier == nil && key != "" {
			verifier, err = logVerifier("", key)
		} else if verifier == nil {
			verifier, err = parseVerifier(file, []byte(p.Key))
		}
		if err != nil {
			return nil, err
		}
		if newest, older, err := p.Checkpoints(verifier); err == nil { // else it is what is found below
			line.add(file, newest, older...)
		}
		rep, err := verifyPart(c.Context(), p, verifier)
		if err != nil {
			return nil, unreadable(err)
		}
		if sum.add(rep); rep.Problem != nil {
			sum.Problem.Detail = filepath.Base(file) + ": " + sum.Problem.Detail
			return sum, nil
		}
	}
	sum.Key, sum.Parts = verifier.Name(), len(files)
	for _, file := range against {
		if err := line.addFile(c, file, verifier); err != nil {
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

// seekable is a file to be read at any place: of a pipe all that comes.
func seekable(f *os.File) (*io.SectionReader, error) {
	if fi, err := f.Stat(); err != nil {
		return nil, err
	} else if fi.Mode().IsRegular() {
		return io.NewSectionReader(f, 0, fi.Size()), nil
	}
	b, err := io.ReadAll(f)
	return io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b))), err
}

func verifyPart(ctx context.Context, p *audit.Part, v note.Verifier) (*verifyReport, error) {
	return decidedAgain(ctx, func(o audit.VerifyOptions) (*audit.Report, error) { return audit.VerifyPart(ctx, p, o) },
		p, p, audit.VerifyOptions{Verifier: v}, func(int64) {})
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
