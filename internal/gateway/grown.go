package gateway

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/policy"
)

// # From now on
//
// After a yes a person may keep what he said it to, as lines that grow beside the
// policy. What is offered is tried before it is: this very call has to pass by the
// lines, under all that the gate holds anything to.

// KindGrown is the kind of a record of what a person kept from now on.
const KindGrown audit.Kind = "grown"

type grownData struct {
	Keep  approval.Keep `json:"keep"`
	By    string        `json:"by"`
	Label string        `json:"label"`
}

const valueLines = "lines" // grown: the lines, as they grow beside the policy

// maxLines bounds the text of the lines of one offer: more than that nobody reads.
const maxLines = 2000

// offers returns what may be kept of a call that waits for a person, the widest
// first, and each only if the call would pass by it.
func (c *judgedCall) offers(in gate.Input, ask *gate.Ask) (out []approval.Offer) {
	wide, exact := approval.Offer{Keep: approval.KeepSource}, approval.Offer{Keep: approval.KeepValue}
	server := approval.Offer{Keep: approval.KeepServer}
	for _, v := range ask.Values {
		if len(v.Grows) == 0 || v.Grows[0].Writes != policy.WritesServer && !slices.ContainsFunc(v.Seen, isOutput) {
			continue
		}
		server.Lines = policy.WithLine(server.Lines, v.Grows[0])
		if i := slices.IndexFunc(v.Grows, func(g policy.Grown) bool { return g.Writes != policy.WritesServer }); i >= 0 {
			switch first := v.Grows[i]; {
			case first.Writes != "":
				wide.Keep = approval.KeepOurs
			case first.Closed != "" && wide.Keep == approval.KeepSource:
				wide.Keep = approval.KeepClosed
			}
			wide.Lines = policy.WithLine(wide.Lines, v.Grows[i])
		}
		exact.Lines = policy.WithLine(exact.Lines, v.Grows[len(v.Grows)-1])
	}
	// One value that was seen is kept for its argument. Else this very call is, without
	// its free texts where it passes so.
	tries := []approval.Offer{wide, {Keep: approval.KeepValue, Lines: alike(in.Policy, exact.Lines)}, exact}
	gives := func(g policy.Grown) bool { return g.Writes == policy.WritesServer }
	if other := func(g policy.Grown) bool { return g.Writes == policy.WritesOurs }; slices.ContainsFunc(server.Lines, gives) && !slices.ContainsFunc(server.Lines, other) {
		tries = slices.Insert(tries, 0, server)
	}
	for _, g := range ask.Keeps {
		keep := approval.KeepValue
		if g.Call == nil {
			keep = approval.KeepPlace
		}
		tries = append(tries, approval.Offer{Keep: keep, Lines: []policy.Grown{g}})
	}
	for _, o := range tries {
		exactly := !slices.ContainsFunc(o.Lines, func(g policy.Grown) bool { return g.Const == nil && g.Call == nil })
		if o.Lines == nil || exactly != (o.Keep == approval.KeepValue) || slices.ContainsFunc(out, func(had approval.Offer) bool { return had.Keep == o.Keep }) {
			continue
		}
		passes, lowers := c.passesBy(in, o.Lines)
		if passes && lowers && o.Keep != approval.KeepValue && o.Keep != approval.KeepServer {
			// What it sends makes the field worth less in later sessions (R38), where the
			// line would not help: there this very call passes all the same.
			for _, g := range ask.Keeps {
				if ok, _ := c.passesBy(in, []policy.Grown{g}); ok {
					o.Lines = policy.WithLine(o.Lines, g)
					break
				}
			}
		}
		if passes {
			out = append(out, o)
		}
	}
	return out
}

// alike are lines of exact values for each tool of the server that takes them by the same name and to which the
// policy lets a person say so in the same words: the repository that git works in is one for all of them.
func alike(p *policy.Policy, lines []policy.Grown) []policy.Grown {
	all := slices.Clone(lines)
	for _, g := range lines {
		c := p.Contracts[g.Tool]
		if c == nil || g.Const == nil {
			return nil
		}
		of := argOf(c, g.Arg)
		if of == nil || !slices.ContainsFunc(of.From, func(s policy.Source) bool { return s.Kind == policy.FromApproval }) {
			continue
		}
		for _, tool := range slices.Sorted(maps.Keys(p.Contracts)) {
			if other := p.Contracts[tool]; other.Server == c.Server {
				if a := argOf(other, g.Arg); a != nil && a.Role == of.Role && a.Type == of.Type && reflect.DeepEqual(a.From, of.From) {
					all = policy.WithLine(all, policy.Grown{Tool: tool, Arg: g.Arg, Const: g.Const})
				}
			}
		}
	}
	if len(all) == len(lines) {
		return nil
	}
	return all
}

func argOf(c *policy.Contract, pointer string) *policy.ArgRule {
	i := slices.IndexFunc(c.Args, func(a policy.ArgRule) bool { return a.At.Source == pointer })
	if i < 0 {
		return nil
	}
	return &c.Args[i]
}

// isOutput reports whether a value was seen where a contract has an output, and was
// not the model's own there.
func isOutput(at gate.Ref) bool { return at.Pointer != "" && at.Label != writ.Model }

// isExact reports whether one of the lines is an exact value or an exact call. In later calls that is a
// word of the operator's. The call that it was kept with goes by the yes, which leaves its
// mark where the value goes (R38): there it is what it was.
func isExact(lines []policy.Grown) bool {
	return slices.ContainsFunc(lines, func(g policy.Grown) bool { return g.Const != nil || g.Call != nil })
}

// passesBy reports whether the call would pass if the lines had grown, and whether it
// would lower the place it goes to then (R38).
func (c *judgedCall) passesBy(in gate.Input, lines []policy.Grown) (passes, lowers bool) {
	if len(policy.GrownText(lines)) > maxLines {
		return false, true
	}
	p, ok := c.rs.policy.With(lines)
	if !ok {
		return false, true
	}
	in.Policy, in.Asked = p, gate.NotAsked
	in.Catalogue, _ = c.rs.catalogue.Renewed(c.rs.definitions, p)
	err := c.g.sessions.with(c.s, func() error {
		in.Session, in.Time = c.s.evidence, c.g.sessions.now()
		d := decide(in)
		passes = d.Allowed()
		at, is := d.Lowers(c.g.places.all)
		lowers = is && !p.Lifts(at.Rests)
		return nil
	})
	return err == nil && passes, err != nil || lowers
}

// grow keeps what was offered: it is on record before the policy has it.
func (g *Gateway) grow(id string, o approval.Offer, by approval.Answer) error {
	if by.Label != writ.User && by.Label != writ.Operator {
		return errors.New("who says so may not")
	}
	ctx, cancel := context.WithTimeout(context.Background(), appendTimeout)
	defer cancel()
	lines, at := slices.Clone(o.Lines), g.sessions.now()
	for i := range lines {
		lines[i].By, lines[i].At = by.By, at.Format(time.RFC3339)
	}
	return g.approvals.grow(ctx, lines, func() error {
		_, err := g.sessions.recordIn(ctx, id, func(s *session) (*receipt, error) {
			return g.sessions.write(s, powerCut, KindGrown, at, grownData{o.Keep, by.By, by.Label.String()}, value{valueLines, policy.GrownText(lines)})
		})
		if err != nil {
			return errors.New("it could not be put on record")
		}
		return nil
	})
}
