package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/memoryserver"
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
	Unfinished []string `json:"unfinished_erasures"`
	Problem    string   `json:"problem,omitempty"`
}

func memoryVerify() *cobra.Command {
	var f flags
	return f.take(&cobra.Command{Use: "verify", Short: "Decide the namespace's whole history again", Args: cli.NoArgs,
		Long: "Fold the namespace from its log and decide every event again under the policy it names.\n" +
			"`writ audit verify` checks the log itself.",
		RunE: f.with(toFold, func(c *cobra.Command, r *remembered, _ []string) error {
			rep, err := r.verify(c.Context())
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
				return cli.Fail(cli.ExitData, "writ memory receipt issue "+rep.Unfinished[0], "an erasure was cut off")
			}
			return nil
		})}, ofMemory...)
}

func (rep *memoryReport) print(w io.Writer) {
	printIDs(w, "erasures whose texts are still in the log:", rep.Unfinished)
	if !rep.OK {
		return
	}
	fmt.Fprintf(w, "ok: %d events of namespace %s decided again, same states", rep.Rechecked, rep.Namespace)
	when(w, rep.Unchecked > 0, "; %d not (erased or never kept)", rep.Unchecked)
	fmt.Fprintf(w, "\nstate %s\n", rep.State)
}

func (r *remembered) verify(ctx context.Context) (*memoryReport, error) {
	rep := &memoryReport{Namespace: r.namespace, Unfinished: []string{}}
	fold := memoryserver.NewFold(r.st)
	defer func() {
		for _, n := range fold.Unfinished {
			rep.Unfinished = append(rep.Unfinished, fmt.Sprintf("dec_%d", n))
		}
		rep.OK = rep.OK && len(rep.Unfinished) == 0
	}()
	for it, err := range r.st.Read(ctx, memoryserver.LogOf(r.namespace), 1) {
		if err != nil {
			return nil, unreadable(err)
		}
		if err := fold.Step(ctx, &it); err != nil {
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
	rep.OK = true
	return rep, nil
}
