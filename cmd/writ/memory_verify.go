package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/memoryserver"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/memory"
)

// memoryReport is what `writ memory verify --json` prints.
type memoryReport struct {
	OK        bool   `json:"ok"`
	Namespace string `json:"namespace"`
	// Events were read from the log: Rechecked of them decided again with the
	// same answer, Unchecked not, because what was proposed was erased or never
	// kept.
	Events    uint64      `json:"events"`
	Rechecked int         `json:"rechecked"`
	Unchecked int         `json:"unchecked"`
	Policy    string      `json:"policy"`
	Mode      memory.Mode `json:"mode"`
	State     string      `json:"state"` // SHA-256 of the state's encoding
	// Unfinished are erasures whose texts are still in the log.
	Unfinished []string    `json:"unfinished_erasures"`
	Index      indexReport `json:"index"`
	Problem    string      `json:"problem,omitempty"`
}

type indexReport struct {
	Rebuilt bool   `json:"rebuilt"`
	At      uint64 `json:"at"`
	Texts   int    `json:"texts"`
	// Differ are the first texts that are not those of the state.
	Differ  []indexDifference `json:"differ"`
	Problem string            `json:"problem,omitempty"`
}

type indexDifference struct {
	ID   string `json:"id"`
	What string `json:"what"` // missing, extra, other
}

func memoryVerify() *cobra.Command {
	var f flags
	var rebuild bool
	c := f.take(&cobra.Command{Use: "verify", Short: "Decide the namespace's whole history again, and compare the index with it", Args: cli.NoArgs,
		Long: "Fold the namespace from its log, decide every event again under the policy it names, and\n" +
			"compare the index of texts with the state that comes out. --rebuild-index makes the index\n" +
			"anew first. `writ audit verify` checks the log itself.",
		RunE: func(c *cobra.Command, _ []string) error {
			name, err := f.name()
			if err != nil {
				return err
			}
			dir, st, err := toTrust(c.Context(), f.state)
			if err != nil {
				return err
			}
			r := &remembered{dir: dir, st: st, namespace: name, principal: operator()}
			defer r.close()
			rep, err := r.verify(c.Context(), rebuild)
			if err != nil {
				return err
			}
			if err := f.show(c, rep, rep.print); err != nil {
				return err
			}
			switch {
			case rep.Problem != "":
				return cli.Fail(cli.ExitData, "writ audit verify; keep a copy of the state directory", "the memory does not verify: %s", rep.Problem)
			case len(rep.Unfinished) > 0:
				return cli.Fail(cli.ExitData, "writ memory sweep", "an erasure was cut off")
			case !rep.OK:
				return cli.Fail(cli.ExitData, "writ memory verify --rebuild-index, with no gateway running", "the index is not that of the state: %s", cmp.Or(rep.Index.Problem, "texts differ"))
			}
			return nil
		}}, ofMemory...)
	c.Flags().BoolVar(&rebuild, "rebuild-index", false, "make the index of texts anew")
	return c
}

func (rep *memoryReport) print(w io.Writer) {
	for _, d := range rep.Index.Differ {
		fmt.Fprintf(w, "index: %s is %s\n", d.ID, d.What)
	}
	printIDs(w, "erasures whose texts are still in the log:", rep.Unfinished)
	if !rep.OK {
		return
	}
	fmt.Fprintf(w, "ok: %d events of namespace %s decided again, same states", rep.Rechecked, rep.Namespace)
	when(w, rep.Unchecked > 0, "; %d not (erased or never kept)", rep.Unchecked)
	fmt.Fprintf(w, "\nstate %s\nindex: %d texts, the same", rep.State, rep.Index.Texts)
	when(w, rep.Index.Rebuilt, ", made anew")
	fmt.Fprintln(w)
}

func (r *remembered) verify(ctx context.Context, rebuild bool) (*memoryReport, error) {
	rep := &memoryReport{Namespace: r.namespace, Unfinished: []string{}, Index: indexReport{Differ: []indexDifference{}}}
	fold := memoryserver.NewFold(r.st)
	for it, err := range r.st.Read(ctx, memoryserver.LogOf(r.namespace), 1) {
		if err != nil {
			return nil, unreadable(err)
		}
		rec, _, err := eventOf(&it)
		if err == nil {
			err = fold.Step(ctx, rec, &it)
		}
		if err != nil {
			rep.Problem = err.Error()
			return rep, nil
		}
	}
	if p := fold.End(); p != nil {
		rep.Problem = p.Error()
		return rep, nil
	}
	s := fold.State()
	if s.Head() == 0 {
		return nil, cli.Fail(cli.ExitData, "writ memory namespace list", "there is no namespace %s in this state directory", r.namespace)
	}
	rep.Events, rep.Rechecked, rep.Unchecked = s.Head(), fold.Rechecked, fold.Unchecked
	rep.Policy, rep.Mode, rep.State = s.PolicyHash(), s.Mode(), s.Digest()
	left, err := r.leftovers(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range left {
		rep.Unfinished = append(rep.Unfinished, fmt.Sprintf("dec_%d", e.N))
	}
	if err := r.verifyIndex(ctx, &rep.Index, rebuild); err != nil {
		return nil, err
	}
	rep.OK = rep.Index.Problem == "" && len(rep.Index.Differ)+len(rep.Unfinished) == 0
	return rep, nil
}

// maxDiffer is how many texts that differ are told.
const maxDiffer = 100

// verifyIndex compares the index with the state, as it stands after it was
// brought to it, which every search does first.
func (r *remembered) verifyIndex(ctx context.Context, rep *indexReport, rebuild bool) (err error) {
	r.index, err = sqlite.OpenIndex(r.dir)
	if rebuild && errors.Is(err, sqlite.ErrRemake) {
		if err := sqlite.RemoveIndex(r.dir); err != nil {
			return storeError(err)
		}
		r.index, err = sqlite.OpenIndex(r.dir)
	} else if rebuild && err == nil {
		err = r.index.Reset(ctx, r.namespace)
	}
	rep.Rebuilt = rebuild && err == nil
	if err == nil {
		err = r.index.Integrity(ctx)
	}
	if err != nil {
		if errors.Is(err, sqlite.ErrRemake) {
			rep.Problem = err.Error()
			return nil
		}
		return storeError(err)
	}
	last, err := newestOf(ctx, r.st, r.namespace)
	if err != nil {
		return err
	}
	if r.policy, err = policyNamed(ctx, r.st, last.Policy); err != nil {
		return err
	}
	if r.keeper, err = r.keep(ctx, r.policy, last.Mode, r.index); err != nil {
		return err
	}
	// Somebody else may write in between; then it is compared again.
	for range 5 {
		var head uint64
		var docs []memory.Doc
		err := r.keeper.Search(ctx, "", nil, 1, func(s *memory.State, _ time.Time, _ []memory.Hit) { head, docs = s.Head(), s.Docs() })
		if err == nil {
			rep.At, err = r.index.At(ctx, r.namespace)
		}
		if err == nil && rep.At == head {
			rep.Texts = len(docs)
			rep.Differ, err = compareDocs(ctx, r.index, r.namespace, docs)
			if after, aerr := r.index.At(ctx, r.namespace); err == nil && aerr == nil && after == head {
				return nil
			}
		}
		if err != nil {
			rep.Problem = err.Error()
			return nil
		}
	}
	rep.Problem = "it is written to all the time"
	return nil
}

// compareDocs says which texts an index holds differently from those given.
func compareDocs(ctx context.Context, x memory.Index, namespace string, docs []memory.Doc) ([]indexDifference, error) {
	out := []indexDifference{}
	want := map[string]memory.Doc{}
	for _, d := range docs {
		want[d.ID] = d
	}
	for d, err := range x.Docs(ctx, namespace) {
		if err != nil {
			return nil, err
		}
		switch w, ok := want[d.ID]; {
		case !ok:
			out = append(out, indexDifference{d.ID, "extra"})
		case w != d:
			out = append(out, indexDifference{d.ID, "other"})
		}
		delete(want, d.ID)
	}
	for id := range want {
		out = append(out, indexDifference{id, "missing"})
	}
	slices.SortFunc(out, func(a, b indexDifference) int { return strings.Compare(a.ID, b.ID) })
	return out[:min(len(out), maxDiffer)], nil
}
