package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/mod/sumdb/note"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/internal/statedir"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/internal/story"
)

// shownCheckpoint is a checkpoint for programs.
type shownCheckpoint struct {
	Origin string     `json:"key"` // name of the log's key
	Size   int64      `json:"size"`
	Root   audit.Hash `json:"root"`
}

func auditCheckpoint() *cobra.Command {
	var f flags
	var byWitnesses bool
	c := f.take(&cobra.Command{
		Use: "checkpoint", Short: "Print the signed checkpoint of the log as it is", Args: cli.NoArgs,
		Long: "Print how many records the log has and the root of its tree, signed with its key: a few lines\n" +
			"that hold no word of what was recorded. Keep them where nobody who can write to this machine\n" +
			"reaches them: `writ audit verify --against FILE` says later whether the log still begins with\n" +
			"all that it had, and `writ audit prove --between FILE` shows it to others. With --cosigned the\n" +
			"newest one that a witness of writ.yaml signed too, as this directory keeps it: whether it\n" +
			"did, its key says to whoever has it, and not this command.",
		RunE: f.onLog(toProve, func(c *cobra.Command, dir string, st *sqlite.Store, _ []string) error {
			verifier, err := logVerifier(dir, "")
			if err != nil {
				return err
			}
			var msg []byte
			var head audit.Checkpoint
			if byWitnesses {
				if msg, head, err = cosigned(dir, verifier); err == nil {
					fmt.Fprintln(c.ErrOrStderr(), "the log's signature was checked, and no witness's: whoever has the witness's key checks that")
				}
			} else {
				var snap audit.Snapshot
				if snap, msg, head, err = checkpointed(c.Context(), dir, st, verifier); err == nil {
					err = snap.Close()
				}
			}
			if err != nil {
				return err
			}
			printed := struct {
				shownCheckpoint
				Checkpoint string `json:"checkpoint"` // the note itself
			}{shownCheckpoint(head), string(msg)}
			return f.show(c, printed, func(w io.Writer) { fmt.Fprintf(w, "%s", msg) })
		}),
	}, "state", "json")
	c.Flags().BoolVar(&byWitnesses, "cosigned", false, "the newest that a witness signed too")
	return c
}

// signs reports whether this is the log's own directory, in which its key signs on.
func signs(dir string) bool {
	return fileThere(filepath.Join(dir, statedir.KeyFile)) && !private.ReadOnly(dir)
}

// toProve is toExplain of what is signed and durable first, where that can be.
func toProve(ctx context.Context, flag string) (dir string, st *sqlite.Store, err error) {
	if dir, err = existingState(flag); err != nil || !signs(dir) {
		return toExplain(ctx, flag)
	}
	st, err = openStore(ctx, dir)
	return dir, st, err
}

// checkpointed is a view of the log with its newest checkpoint. All that the checkpoint
// covers is on disk, so that no power cut makes a log differ from what others keep of
// it; but not where nothing can be written, and what was signed last is all there is.
func checkpointed(ctx context.Context, dir string, st *sqlite.Store, v note.Verifier) (snap audit.Snapshot, msg []byte, head audit.Checkpoint, err error) {
	if signs(dir) {
		if msg, err = st.Checkpoint(ctx); errors.Is(err, audit.ErrNotFound) {
			return nil, nil, head, cli.Fail(cli.ExitIO, "writ serve", "nothing was recorded yet")
		} else if err != nil {
			return nil, nil, head, unreadable(err)
		}
	}
	if snap, err = st.Snapshot(ctx); err != nil {
		return nil, nil, head, unreadable(err)
	}
	if msg == nil {
		for m, err := range snap.Checkpoints(ctx) {
			if msg = m; err != nil {
				snap.Close()
				return nil, nil, head, unreadable(err)
			}
		}
	}
	if head, err = audit.OpenCheckpoint(msg, v); err != nil {
		snap.Close()
		return nil, nil, head, cli.Fail(cli.ExitData, "writ audit verify", "the log's key signed none of it")
	}
	return snap, msg, head, nil
}

func auditProve() *cobra.Command {
	var f flags
	var out, since string
	var bare bool
	c := f.take(&cobra.Command{
		Use: "prove {SESSION/N | --between FILE} -o FILE", Short: "Write the proof of one decision, redaction or older checkpoint, for others",
		Long: "Write one decision, and what came of its call, as a small file that verifies by itself: the\n" +
			"records, the values that are still there, the way from them to the log's signed checkpoint,\n" +
			"and its public key. Values are what users and tools said; --no-values leaves them out.\n" +
			"Of a redaction, whose id `writ audit redact` prints, it is the receipt.\n" +
			"With --between FILE, a checkpoint that was kept: that the log of now begins with all that it\n" +
			"had then. `writ audit verify --proof FILE` checks either with nothing else.",
		Args: between(0, 1, "at most one decision"),
		PreRunE: func(_ *cobra.Command, args []string) error {
			if out == "" || (len(args) == 1) == (since != "") {
				return cli.Fail(cli.ExitUsage, "writ audit prove SESSION/N -o FILE", "a decision or --between is needed, and a file to write")
			}
			return nil
		},
		RunE: f.onLog(toProve, func(c *cobra.Command, dir string, st *sqlite.Store, args []string) error {
			var all []audit.ProvenRecord
			if since == "" {
				of, n, _ := strings.Cut(args[0], "/")
				of, err := publicID(c.Context(), st, dir, of)
				if err == nil {
					all, err = provable(c.Context(), st, of, n, 0)
				}
				if err != nil {
					return err
				}
			}
			b, head, err := proofOf(c.Context(), dir, st, all, bare, func(v note.Verifier) ([]byte, error) {
				older, _, err := readCheckpoint(c, since, v)
				return older, err
			})
			if err != nil {
				return err
			}
			proven := struct {
				shownCheckpoint
				Bytes int `json:"bytes"`
			}{shownCheckpoint(head), len(b)}
			return f.handOver(c, out, "proof", b, proven, "%d bytes, of a log of %d records", len(b), head.Size)
		}),
	}, "state", "json")
	c.Flags().StringVarP(&out, "out", "o", "", "`FILE` to write; never over one that is there")
	c.Flags().StringVar(&since, "between", "", "`FILE` of an older checkpoint")
	c.Flags().BoolVar(&bare, "no-values", false, "leave out what users and tools said")
	c.MarkFlagsMutuallyExclusive("between", "no-values")
	return c
}

// proofOf proves records of the log, with their values or bare, and that it goes on from an
// older checkpoint where there are none.
func proofOf(ctx context.Context, dir string, st *sqlite.Store, all []audit.ProvenRecord, bare bool, readOlder func(note.Verifier) ([]byte, error)) (b []byte, head audit.Checkpoint, err error) {
	key, verifier, err := readKey(dir, "")
	if err != nil {
		return nil, head, err
	}
	var older []byte
	if len(all) == 0 {
		if older, err = readOlder(verifier); err != nil {
			return nil, head, err
		}
	}
	// After the records were read, so that they are among those it covers.
	snap, msg, head, err := checkpointed(ctx, dir, st, verifier)
	if err != nil {
		return nil, head, err
	}
	defer snap.Close()
	if older != nil {
		b, err = audit.ProveGrowth(snap, key, older, msg)
	} else {
		var items []audit.Item
		for _, r := range all {
			if bare {
				r.Values = nil
			}
			items = append(items, r.Item)
		}
		b, err = audit.ProveRecords(snap, key, msg, items...)
	}
	switch {
	case errors.Is(err, audit.ErrTooLarge):
		return nil, head, cli.Fail(cli.ExitData, "the same command with --no-values", "the proof would be larger than %d bytes", audit.MaxProof)
	case errors.Is(err, audit.ErrAltered) && older != nil:
		return nil, head, cli.Fail(cli.ExitData, "writ audit verify --against FILE", "the log does not go on from that checkpoint")
	case err != nil:
		return nil, head, unreadable(err)
	}
	return b, head, nil
}

// provable is decided, or the record of a redaction.
func provable(ctx context.Context, st *sqlite.Store, session, num string, within uint64) ([]audit.ProvenRecord, error) {
	if n, err := strconv.ParseUint(num, 10, 64); err == nil && audit.ValidSession(session) {
		for it, err := range st.Read(ctx, session, n) {
			if err != nil {
				return nil, unreadable(err)
			}
			if rec, err := audit.ParseRecord(it.Leaf); err == nil && rec.N == n && rec.Kind == audit.KindRedact {
				return []audit.ProvenRecord{{Item: it, Record: rec}}, nil
			}
			break
		}
	}
	all, _, _, err := story.Decided(ctx, st, session, num, within)
	return all, err
}

// handOver writes a proof or a bundle to a file that must not be there yet, for its owner alone, and
// says what is in it.
func (f *flags) handOver(c *cobra.Command, out, what string, b []byte, shown any, holds string, args ...any) error {
	err := private.WriteOnce(out, b, 0o600)
	switch {
	case errors.Is(err, os.ErrExist):
		return cli.Fail(cli.ExitIO, "another name after -o", "%s is there already", cli.Printable(out))
	case err != nil:
		return cli.Fail(cli.ExitIO, "the same command with -o FILE elsewhere", "the %s cannot be written", what)
	}
	return f.show(c, shown, func(w io.Writer) {
		fmt.Fprintf(w, "ok: "+holds+"; `writ audit verify --%s %s` checks them anywhere\n", append(args, what, cli.Printable(out))...)
	})
}

// proofReport is what a proof shows.
type proofReport struct {
	OK bool `json:"ok"`
	shownCheckpoint
	KeyInside bool             `json:"key_inside"` // no other key was given: the one in the file was believed
	Records   []shownProven    `json:"records,omitempty"`
	Older     *shownCheckpoint `json:"older,omitempty"`
}

type shownProven struct {
	Index  int64      `json:"index"`
	ID     string     `json:"id"`
	Kind   audit.Kind `json:"kind"`
	Time   time.Time  `json:"time"`
	Tool   string     `json:"tool,omitempty"`
	Status string     `json:"status"`
	Reason string     `json:"reason,omitempty"`
	Shadow bool       `json:"shadow,omitempty"`
	Values []string   `json:"values"` // those in the file, by name
	Absent int        `json:"absent"` // those erased or left out
}

// verifyProof is verify of what writ audit prove wrote.
func (f *flags) verifyProof(c *cobra.Command, file, key string) error {
	b, err := readInput(file, "proof", audit.MaxProof, c.InOrStdin(), "writ audit verify --proof FILE")
	if err != nil {
		return err
	}
	var verifier note.Verifier
	if key != "" {
		if verifier, err = logVerifier("", key); err != nil {
			return err
		}
	}
	p, err := audit.CheckProof(b, verifier)
	if err != nil {
		return cli.Fail(cli.ExitData, "writ audit prove", "%w", err)
	}
	rep := proofReport{OK: true, shownCheckpoint: shownCheckpoint(p.Checkpoint), KeyInside: key == ""}
	if len(p.Records) == 0 {
		rep.Older = new(shownCheckpoint(p.Older))
	}
	for _, r := range p.Records {
		s := shownProven{Index: r.Index, ID: fmt.Sprintf("%s/%d", r.Session, r.N), Kind: r.Record.Kind, Time: r.Record.Time,
			Status: story.Ended(r.Record).Status, Values: []string{}, Absent: len(r.Record.Commit) - len(r.Values)}
		if d, ok := story.Of(r.Record); ok {
			s.Tool, s.Reason, s.Shadow = d.Tool, d.Reason, d.Shadow
		}
		for _, v := range r.Values {
			s.Values = append(s.Values, v.Name)
		}
		rep.Records = append(rep.Records, s)
	}
	return f.show(c, rep, rep.print)
}

func (r *proofReport) print(w io.Writer) {
	log := fmt.Sprintf("the log which the key %s signed, with %d records", cli.OneLine(r.Origin, 120), r.Size)
	for i, p := range r.Records {
		if p.Kind == audit.KindRedact {
			fmt.Fprintf(w, "ok: that the values of session %s were taken out of the log stands, by record %s of %s, at index %d of %s", cli.OneLine(strings.Split(p.ID, "/")[0], 80), p.ID, p.Time.Format(time.RFC3339), p.Index, log)
		} else if i == 0 {
			fmt.Fprintf(w, "ok: decision %s of %s (%s, %s", p.ID, p.Time.Format(time.RFC3339), cli.OneLine(p.Tool, 120), story.Word(p.Status, p.Reason))
			when(w, p.Reason != "", ", %s", cli.OneLine(p.Reason, 60))
			when(w, p.Shadow, ", and shadow mode let it pass")
			fmt.Fprintf(w, ") stands at index %d of %s", p.Index, log)
		} else {
			fmt.Fprintf(w, "; what came of its call (%s, %s) stands at index %d", p.Kind, cli.OneLine(p.Status, 20), p.Index)
		}
		when(w, len(p.Values) > 0, ", with its %s", strings.Join(p.Values, ", "))
		when(w, p.Absent > 0, " (values erased or left out: %d)", p.Absent)
	}
	if r.Older != nil {
		fmt.Fprintf(w, "ok: %s, begins with all of the older checkpoint, of size %d; that its records were decided rightly is not proven: that needs the log\n", log, r.Older.Size)
	} else if len(r.Records) > 0 && r.Records[0].Kind == audit.KindRedact {
		fmt.Fprintf(w, "; copies of the state directory, and bundles, may hold them still\n")
	} else {
		fmt.Fprintf(w, "; that it was decided rightly is not proven: that needs its session\n")
	}
	when(w, r.KeyInside, "the key is the file's own: whose log it is, a copy of log.pub kept elsewhere says (--key)\n")
}
