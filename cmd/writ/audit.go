package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/mod/sumdb/note"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/internal/statedir"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/internal/story"
)

func auditCommand() *cobra.Command {
	return group("audit", "Check and explain what was decided", "", auditVerify(), auditShow(), auditTail(), auditReplay(), auditSettle(), auditCheckpoint(), auditProve(), auditExport(), auditRedact())
}

type verifyReport struct {
	OK bool `json:"ok"`
	*audit.Report
	gateway.Tally
	// MemoryEvents are events of the governed memory that were decided again
	// with the same answer; MemoryUnchecked those whose proposal was erased or
	// never kept.
	MemoryEvents    int    `json:"memory_events"`
	MemoryUnchecked int    `json:"memory_unchecked"`
	Key             string `json:"key"`             // name of the log's key, the origin of its checkpoints
	Against         int    `json:"against"`         // checkpoints of --against that the log goes on from
	Parts           int    `json:"parts,omitempty"` // files that hold a part of the log each
}

func auditVerify() *cobra.Command {
	var f flags
	var key, proof string
	var against, bundles []string
	c := f.take(&cobra.Command{
		Use: "verify [--bundle FILE … | --proof FILE]", Short: "Check the whole log, and decide every decision again",
		Args: func(_ *cobra.Command, args []string) error {
			if len(bundles) == 0 && len(args) > 0 {
				return cli.Fail(cli.ExitUsage, "writ audit verify --bundle FILE", "files are given with --bundle, or --proof")
			}
			return nil
		},
		Long: "Check every record, value and hash of the log, that its key signed all of it, and the store's\n" +
			"own indexes; decide every decision again; and compare with the head that this machine keeps\n" +
			"beside the state directory. Nothing is written, so it runs on read-only media and beside a\n" +
			"gateway. With --key FILE, a copy of log.pub kept elsewhere, nothing in the directory is\n" +
			"believed. With --against FILE the log must begin with all that a checkpoint of\n" +
			"`writ audit checkpoint`, kept elsewhere, was signed for.\n\n" +
			"With --bundle FILE a file of `writ audit export` is checked, and with --proof FILE one of\n" +
			"`writ audit prove`; no state directory is looked at, and without --key as well, its own key\n" +
			"is believed. --bundle takes several files, or a directory of archives: then it is checked too\n" +
			"that all of them are of one log, which only grew from each to the next. --against takes a file of\n" +
			"`writ audit prove --between ARCHIVE` there, which shows that the log of now goes on from them.\n\n" +
			"Exit codes: 0 everything was checked and is right; 65 something is wrong, and the first of it\n" +
			"is named; 69 nothing is wrong, and decisions of another engine of Writ could not be made\n" +
			"again; 74 the log cannot be read.",
		RunE: func(c *cobra.Command, args []string) error {
			if proof != "" {
				return f.verifyProof(c, proof, key)
			}
			defer debug.SetGCPercent(debug.SetGCPercent(100)) // until gathered knows better
			var rep *verifyReport
			dir, err := "", error(nil)
			if len(bundles) > 0 {
				rep, err = verifyBundles(c, append(bundles, args...), key, against)
			} else if dir, err = existingState(f.state); err == nil {
				rep, err = verify(c, dir, key, against)
			}
			if err != nil {
				return err
			}
			if err := f.show(c, rep, rep.print); err != nil {
				return err
			}
			if rep.Problem == nil && !rep.OK {
				return cli.Fail(cli.ExitUnproven, "verify with the version of Writ that wrote them", "%d decisions are of another engine: signed, and not made again", rep.Skipped)
			}
			if !rep.OK {
				return cli.Fail(cli.ExitData, "keep a copy of the state directory; do not write to it", "the log does not verify; first bad: %s", rep.Problem.Error())
			}
			return nil
		},
	}, "state", "json")
	c.Flags().StringVar(&key, "key", "", "`FILE` of the log's public key (default: the state directory's own)")
	c.Flags().StringArrayVar(&bundles, "bundle", nil, "`FILE` of writ audit export to check, several, or a directory of archives")
	c.Flags().StringVar(&proof, "proof", "", "`FILE` of writ audit prove to check")
	c.Flags().StringArrayVar(&against, "against", nil, "`FILE` of a checkpoint kept elsewhere (may be given several times)")
	c.MarkFlagsMutuallyExclusive("bundle", "state", "proof")
	c.MarkFlagsMutuallyExclusive("against", "proof")
	return c
}

// gathered says how much more than what it needs a verification may hold: nearly all that it takes into memory
// it lets go of at once, and mostly it needs little. That is three times as much, where the heap is not more than 64 MB
// then, and half as much in any case.
func gathered() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	needed := int(max(live[0].Value.Uint64(), 1))
	debug.SetGCPercent(min(max((64<<20-needed)*100/needed, 50), 300))
}

// print tells what was checked, nothing where something is wrong.
func (r *verifyReport) print(w io.Writer) {
	if r.Problem != nil {
		return
	}
	word := "ok"
	if !r.OK {
		word = "not all proven"
	}
	fmt.Fprintf(w, word+": %s of %s, %d accepted, %d refused", cli.Number(r.Records, "record", "records"), cli.Number(r.Sessions, "session", "sessions"), r.Accepted, r.Rejected)
	when(w, r.Rejected > 0, " or asked") // the log counts both as one
	fmt.Fprintf(w, "; %s", cli.Number(r.Replayed, "decision made again, same answer", "decisions made again, same answers"))
	when(w, r.Certificates > 0, "; %s", cli.Number(r.Certificates, "certificate holds", "certificates hold"))
	when(w, r.Grounded > 0, "; %s", cli.Number(r.Grounded, "summary found in its source", "summaries found in their sources"))
	when(w, r.Skipped > 0, "; %d of another engine, not made again", r.Skipped)
	when(w, r.Redacted > 0, "; %d of redacted sessions, not made again", r.Redacted)
	when(w, r.Unfinished > 0, "; redactions that were cut off: %d (the same writ audit redact finishes them)", r.Unfinished)
	when(w, r.MemoryEvents+r.MemoryUnchecked > 0, "; %d events of the memory decided again, same states", r.MemoryEvents)
	when(w, r.MemoryUnchecked > 0, "; %d not decided again (erased or never kept)", r.MemoryUnchecked)
	when(w, r.Parts > 0, "; in %s, all of one log that only grew", cli.Number(r.Parts, "file", "files"))
	when(w, r.Against > 0, "; checkpoints kept elsewhere that it goes on from: %d", r.Against)
	fmt.Fprintf(w, "\nlog %s, size %d, root %s\n", cli.Printable(r.Key), r.Size, r.Root)
}

// existingState is stateDir for commands that only read: it makes nothing.
func existingState(flag string) (string, error) {
	dir, err := stateThere(flag)
	switch {
	case err != nil || dir != "":
		return dir, err
	case flag != "" && !fileThere(flag):
		return "", cli.Fail(cli.ExitIO, "writ … --state DIR", "there is no such state directory")
	}
	dir, _ = statePath(flag)
	return "", cli.Fail(cli.ExitIO, "writ serve", "nothing was recorded in %s yet", cli.Printable(dir))
}

// stateThere is existingState where there may be none: "" where nothing was recorded yet.
func stateThere(flag string) (string, error) {
	if flag != "" && !fileThere(flag) {
		return "", nil
	}
	dir, err := madeState(flag)
	// What lies on a medium without writes nobody alters, and no command mends.
	if err == nil && !private.ReadOnly(dir) {
		err = checkState(dir)
	}
	if err != nil {
		return "", err
	}
	if !fileThere(filepath.Join(dir, statedir.KeyFile)) && !fileThere(filepath.Join(dir, sqlite.FileName)) {
		return "", nil
	}
	return dir, nil
}

func fileThere(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// verify checks the log's own structure and makes every decision again.
func verify(c *cobra.Command, dir, key string, against []string) (*verifyReport, error) {
	ctx, stderr := c.Context(), c.ErrOrStderr()
	verifier, err := logVerifier(dir, key)
	if err != nil {
		return nil, err
	}
	known, err := keptElsewhere(c, against, verifier)
	if err != nil {
		return nil, err
	}
	p := progress{w: stderr, tty: cli.Terminal(stderr)}
	rep, err := verifyLog(ctx, dir, verifier, known, p.step)
	p.end()
	if err != nil {
		return nil, err
	}
	rep.Against = len(against)
	return rep, nil
}

// verifyLog is verify with checkpoints that were kept elsewhere, and tells how far it is. Beside who uses
// the log it is read in pieces, and what is wrong then once more in one: it may have been erased meanwhile.
func verifyLog(ctx context.Context, dir string, verifier note.Verifier, known []audit.Checkpoint, progress func(done, of int64)) (*verifyReport, error) {
	rep, moved, err := verifyOnce(ctx, dir, verifier, known, (*sqlite.Store).Passage, progress)
	for err == nil && moved && rep.Problem != nil { // now with the locks of whoever uses it
		rep, moved, err = verifyOnce(ctx, dir, verifier, known, (*sqlite.Store).Snapshot, progress)
	}
	return rep, err
}

// verifyOnce verifies what take has of the log; moved says that this may be of two moments.
func verifyOnce(ctx context.Context, dir string, verifier note.Verifier, known []audit.Checkpoint, take func(*sqlite.Store, context.Context) (audit.Snapshot, error), progress func(done, of int64)) (rep *verifyReport, moved bool, err error) {
	// Before the snapshot, which is at least as new then.
	if c, ok := sqlite.KnownElsewhere(statedir.HeadsDir(dir), verifier); ok {
		known = append(slices.Clip(known), c)
	}
	st, err := sqlite.OpenReadOnly(dir, sqlite.Options{}) // what is wrong is to be found here
	if err != nil {
		return nil, false, storeError(err)
	}
	defer st.Close()
	snap, err := take(st, ctx)
	if err != nil {
		return nil, false, unreadable(err)
	}
	defer snap.Close()

	whole := make(chan error, 1) // beside the rest
	go func() { whole <- st.Integrity(ctx) }()
	rep, err = decidedAgain(ctx, wholeLog(ctx, snap), st, snap.(reader), audit.VerifyOptions{Verifier: verifier, Known: known}, func(i int64) { progress(i, snap.Size()) })
	indexes := <-whole
	if err != nil {
		return nil, false, unreadable(err)
	}
	if rep.Problem == nil && indexes != nil {
		rep.Problem = &audit.Problem{Index: rep.Size, Fault: audit.LogIndexes, Detail: cli.OneLine(indexes.Error(), 200)}
	}
	rep.Key, rep.OK = verifier.Name(), rep.Problem == nil && rep.Skipped == 0
	return rep, st.Disturbed(), nil
}

func wholeLog(ctx context.Context, s audit.Snapshot) func(audit.VerifyOptions) (*audit.Report, error) {
	return func(o audit.VerifyOptions) (*audit.Report, error) { return audit.Verify(ctx, s, o) }
}

// keptElsewhere reads checkpoints that the log's key signed.
func keptElsewhere(c *cobra.Command, files []string, v note.Verifier) (all []audit.Checkpoint, err error) {
	for _, file := range files {
		_, known, err := readCheckpoint(c, file, v)
		if err != nil {
			return nil, err
		}
		all = append(all, known)
	}
	return all, nil
}

// mostLine is more than a checkpoint, and the first line of a part of a log.
const mostLine = 256 << 10

func readCheckpoint(c *cobra.Command, file string, v note.Verifier) (msg []byte, known audit.Checkpoint, err error) {
	if msg, err = readStart(file, "checkpoint", mostLine, c.InOrStdin(), "writ audit checkpoint > FILE"); err != nil {
		return nil, known, err
	}
	if line, _, _ := bytes.Cut(msg, []byte{'\n'}); audit.IsPart(line) {
		msg, known, err = audit.PartCheckpoint(append(bytes.Clone(line), '\n'), v)
	} else {
		known, err = audit.OpenCheckpoint(msg, v) // of which one that is cut off is none
	}
	if err != nil {
		return nil, known, cli.Fail(cli.ExitData, "", "%s is no checkpoint that the log's key signed", cli.Printable(file))
	}
	return msg, known, nil
}

// verifyBundle is verify of what writ audit export wrote of a whole log.
func verifyBundle(c *cobra.Command, file string, in *io.SectionReader, key string, against []string) (*verifyReport, error) {
	ctx := c.Context()
	b, err := audit.OpenBundle(in, in.Size())
	if err != nil {
		return nil, cli.Fail(cli.ExitData, "writ audit export -o FILE", "%w", err)
	}
	verifier, err := givenKey(key, file, b.Key)
	if err != nil {
		return nil, err
	}
	known, err := keptElsewhere(c, against, verifier)
	if err != nil {
		return nil, err
	}
	rep, err := decidedAgain(ctx, wholeLog(ctx, b), b, b, audit.VerifyOptions{Verifier: verifier, Known: known}, func(int64) {})
	if err != nil {
		return nil, unreadable(err)
	}
	rep.Key, rep.Against, rep.OK = verifier.Name(), len(against), rep.Problem == nil && rep.Skipped == 0
	return rep, nil
}

func auditExport() *cobra.Command {
	var f flags
	var out string
	var since []string
	open := toExplain
	c := f.take(&cobra.Command{
		Use: "export [SESSION …] -o FILE", Short: "Write the log, or some of its sessions, as one file that verifies by itself",
		Long: "Write every record with the values that are still there, every policy and catalogue, the\n" +
			"log's public key and the checkpoints it signed. `writ audit verify --bundle FILE` checks\n" +
			"them with nothing else, wherever the file is; with --key FILE, a copy of log.pub kept\n" +
			"elsewhere, also that it is this log. What users and tools said stands in the file as\n" +
			"it is, and an erasure no longer reaches it.\n\n" +
			"Of SESSIONs alone it holds their records, with the proof that each stands in the log which the\n" +
			"checkpoint of now was signed for, and nothing of other sessions but which places of servers were\n" +
			"written to. With --since FILE, a checkpoint or an archive, also the proof that this log goes on from it.",
		PreRunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				open = toProve
			} else if len(since) > 0 {
				return cli.Fail(cli.ExitUsage, "writ audit prove --between FILE -o FILE", "--since is for sessions: in the whole log stands what it went on from")
			}
			if out == "" {
				return cli.Fail(cli.ExitUsage, "writ audit export -o FILE", "a file is needed")
			}
			return nil
		},
		RunE: f.onLog(func(ctx context.Context, flag string) (string, *sqlite.Store, error) { return open(ctx, flag) }, func(c *cobra.Command, dir string, st *sqlite.Store, args []string) error {
			if len(args) > 0 {
				return f.exportSessions(c, dir, st, args, since, out)
			}
			var b bytes.Buffer
			of, err := writeBundle(c.Context(), &b, dir, st)
			if err != nil {
				return err
			}
			exported := struct {
				Records int64      `json:"records"`
				Root    audit.Hash `json:"root"`
				Bytes   int        `json:"bytes"`
			}{of.Size, of.Root, b.Len()}
			return f.handOver(c, out, "bundle", b.Bytes(), exported, "%s, root %s", cli.Number(of.Size, "record", "records"), of.Root)
		}),
	}, "state", "json")
	c.Flags().StringVarP(&out, "out", "o", "", "`FILE` to write; never over one that is there")
	c.Flags().StringArrayVar(&since, "since", nil, "`FILE` of an older checkpoint, or of an archive (may be given several times)")
	return c
}

// writeBundle writes the whole log as it is, and returns of how many records and which root.
func writeBundle(ctx context.Context, w io.Writer, dir string, st *sqlite.Store) (of audit.Checkpoint, err error) {
	key, err := logKeyText(dir, "")
	if err != nil {
		return of, err
	}
	snap, err := st.Snapshot(ctx)
	if err != nil {
		return of, unreadable(err)
	}
	defer snap.Close()
	if err := audit.WriteBundle(ctx, w, snap, key); err != nil {
		return of, unreadable(err)
	}
	return audit.Checkpoint{Size: snap.Size(), Root: snap.Root()}, nil
}

// openForReading opens the log to read it: what is read is proven.
func openForReading(dir string) (*sqlite.Store, error) {
	verifier, err := logVerifier(dir, "")
	if err != nil {
		return nil, err
	}
	st, err := sqlite.OpenReadOnly(dir, sqlite.Options{Verifier: verifier})
	if err != nil {
		return nil, storeError(err)
	}
	return st, nil
}

// openCurrent is openForReading of a log that is as new as this machine knows it
// to have been; the flag of acceptsRollback reads an older one.
func openCurrent(ctx context.Context, dir string) (*sqlite.Store, error) {
	verifier, err := logVerifier(dir, "")
	if err != nil {
		return nil, err
	}
	// Before the log is opened, which is at least as new then.
	known, ok := sqlite.KnownElsewhere(statedir.HeadsDir(dir), verifier)
	st, err := openForReading(dir)
	if accept, _ := ctx.Value(acceptRollback{}).(bool); err != nil || accept || !ok {
		return st, err
	}
	if err := st.Continues(ctx, known); err != nil {
		st.Close()
		if !errors.Is(err, audit.ErrAltered) {
			return nil, unreadable(err)
		}
		return nil, cli.Fail(cli.ExitData, "writ audit verify", "the state directory was rolled back, or its log is another: this machine knows a head that it does not go on from; --%s reads it all the same", acceptRollbackFlag)
	}
	return st, nil
}

// progress is a counter on a terminal, and nothing elsewhere.
type progress struct {
	w     io.Writer
	tty   bool
	last  time.Time
	shown bool
}

func (p *progress) step(i, total int64) {
	if !p.tty || i%256 != 0 {
		return
	}
	if now := time.Now(); now.Sub(p.last) > 200*time.Millisecond {
		p.last, p.shown = now, true
		fmt.Fprintf(p.w, "\rverifying %d of %d", i, total)
	}
}

func (p *progress) end() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// unreadable is the exit of a command that could not read the log.
func unreadable(err error) error { return story.Unreadable(err) }

// exportSessions writes some sessions of a log as a part of it.
func (f *flags) exportSessions(c *cobra.Command, dir string, st *sqlite.Store, names, since []string, out string) error {
	ctx := c.Context()
	text, verifier, err := readKey(dir, "")
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
	exported := struct {
		shownCheckpoint
		Records int `json:"records"`
		Bytes   int `json:"bytes"`
	}{shownCheckpoint(head), len(p.Items), b.Len()}
	return f.handOver(c, out, "bundle", b.Bytes(), exported, "%s, of a log of %d", cli.Number(exported.Records, "record", "records"), head.Size)
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
