package memory

import (
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/memory"
)

// with returns one scenario with one text replaced, at every place it stands.
func with(t *testing.T, file, old, now string) fs.FS {
	t.Helper()
	files := only(t, file).(fstest.MapFS)
	b := files["cases/"+file].Data
	if !strings.Contains(string(b), old) {
		t.Fatalf("%s has no %q", file, old)
	}
	files["cases/"+file].Data = []byte(strings.ReplaceAll(string(b), old, now))
	return files
}

func gateOf(r *Stages, id string) *Gate {
	for i := range r.Gates {
		if r.Gates[i].ID == id {
			return &r.Gates[i]
		}
	}
	return nil
}

// edited are the built-in policies with other constants.
func edited(t *testing.T, edits ...string) func(string) (*memory.Policy, bool) {
	return func(profile string) (*memory.Policy, bool) {
		p, _ := memory.Builtin(profile)
		q, err := edit(p, profile, edits...)
		if err != nil {
			t.Fatal(err)
		}
		return q, true
	}
}

// TestBroken puts a memory in place of the product's that is broken in ways
// memories get broken, or an expectation that is not so. The evaluation must
// find each out, by the gate that is there for it.
func TestBroken(t *testing.T) {
	refuse := func(s *memory.State, c memory.Context, p writ.Proposal) memory.Decision {
		return memory.Handle(s, c, writ.Proposal{ToolName: "no_such_tool", Payload: p.Payload})
	}
	const (
		rules1  = "stage1." + B5
		origin1 = "stage1." + B501
		rules2  = "stage2." + B5
	)
	for _, c := range []struct {
		name  string
		stage Part
		put   func(o *Options)
		gates string
	}{
		{"a memory that accepts everything", 1, func(o *Options) {
			o.Policy = edited(t, "thresholds.accepted_confidence 0", "thresholds.accepted_groups 0", "flags.low_trust false")
		}, rules1 + " " + origin1},
		{"a memory that accepts everything, under stress", 2, func(o *Options) {
			o.Policy = edited(t, "thresholds.accepted_confidence 0", "thresholds.accepted_groups 0", "flags.low_trust false")
		}, rules2},
		{"a memory that believes nothing", 1, func(o *Options) { o.Memory.Handle = refuse }, rules1 + " " + origin1},
		{"a memory that believes nothing, under stress", 2, func(o *Options) { o.Memory.Handle = refuse }, rules2},
		{"strangers make things usable", 2, func(o *Options) { o.Policy = edited(t, "flags.low_trust false") }, rules2},
		{"strangers contest what is known", 2, func(o *Options) { o.Policy = edited(t, "flags.eligibility false") }, rules2},
		{"one tool's word replaces a person's", 2, func(o *Options) { o.Policy = edited(t, "flags.tool_may_supersede_user true") }, rules2},
		{"nothing decays", 1, func(o *Options) {
			o.Policy = edited(t, "thresholds.deprecated_freshness 0", "thresholds.accepted_freshness 0", "confidence.staleness_multiplier 0")
		}, rules1 + " " + origin1},
		{"a failed test is forgotten", 1, func(o *Options) { o.Policy = edited(t, "flags.durable_failure false") }, rules1},
		{"the mean where noisy-or belongs", 1, func(o *Options) { o.Policy = edited(t, "flags.noisy_or false") }, rules1},
		{"repetition counts on and on", 2, func(o *Options) { o.Policy = edited(t, "saturation { first: 0.40, second: 0.30, third: 0.30 }") }, rules2},
		{"one source is enough", 1, func(o *Options) { o.Policy = edited(t, "thresholds.accepted_groups 1") }, rules1 + " " + origin1},
		{"decides otherwise the second time", 1, func(o *Options) {
			o.Memory.Handle = func(s *memory.State, c memory.Context, p writ.Proposal) memory.Decision {
				d := memory.Handle(s, c, p)
				for i := range d.Event.Ops {
					if b := d.Event.Ops[i].Belief; b != nil && b.Next == memory.Provisional {
						b.Next = memory.Accepted
					}
				}
				return d
			}
		}, rules1 + " " + origin1 + " integrity"},

		{"an expected state is changed", 1, func(o *Options) {
			o.Files = with(t, "S1.1.yaml", "state: provisional", "state: accepted")
		}, rules1 + " " + origin1},
		{"an expected confidence is off by a millionth", 1, func(o *Options) {
			o.Files = with(t, "S1.1.yaml", `"0.87256"`, `"0.872561"`)
		}, rules1},
		{"an expected rule is another", 1, func(o *Options) {
			o.Files = with(t, "S1.6.yaml", "recorded_rule_id: transition.rejected.failed_test", "recorded_rule_id: transition.rejected.contradiction_saturation")
		}, rules1 + " " + origin1},
		{"an expected value is another", 2, func(o *Options) {
			o.Files = with(t, "S2.1.yaml", "slot: boat.home_port, value: <right>", "slot: boat.home_port, value: <wrong>")
		}, rules2},
		{"an expected effect is another", 2, func(o *Options) {
			o.Files = with(t, "S2.7.yaml", "effect: trigger.high_impact_small_gap", "effect: trigger.contested_persistence")
		}, rules2},
		{"what is erased is expected to be there", 2, func(o *Options) {
			o.Files = with(t, "S2.9.yaml", "observation: o2, erased: true", "observation: o2, erased: false")
		}, rules2},
		{"links to the wrong one are expected", 2, func(o *Options) {
			o.Files = with(t, "S2.5.yaml", "entity: one_match, linked_to: a", "entity: one_match, linked_to: b")
		}, rules2},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options()
			o.Only, o.Seeds = c.stage, []uint64{1} // one is enough to be found out
			if c.stage == 2 {
				o.Files = only(t, "S2.3.yaml", "S2.4b.yaml", "S2.6.yaml", "S2.8a.yaml", "S2.8h.yaml")
			}
			if sound := evaluated(t, o); slices.ContainsFunc(sound.Unmet, func(u Unmet) bool { return u.System == B5 }) {
				t.Fatalf("the product itself is found out: %+v", sound.Unmet)
			}
			c.put(&o)
			r := evaluated(t, o)
			for id := range strings.FieldsSeq(c.gates) {
				if g := gateOf(r, id); g == nil || g.Met {
					t.Errorf("the gate %s did not find it out: %+v", id, g)
				}
			}
		})
	}
}

// TestComparison: the gates of stage 3 go both ways.
func TestComparison(t *testing.T) {
	of := func(b1, b5 map[string]float64) *Stages {
		figures := func(name string, in map[string]float64) Figures {
			out := Figures{System: System{Name: name}, Figures: map[string]*Figure{}}
			for k, v := range in {
				out.Figures[k] = &Figure{Value: v, N: 1, Of: 1}
			}
			return out
		}
		r := &Stages{Systems: []Figures{figures(B1, b1), figures(B5, b5)}}
		r.compare()
		return r
	}
	but := func(in map[string]float64, name string, v float64) map[string]float64 {
		out := maps.Clone(in)
		out[name] = v
		return out
	}
	good := map[string]float64{"false_promotion_rate": 0.1, "calibration_ece": 0.1, "contradiction_recovery_rate": 1, "stale_handling": 0.9, "task_success": 0.9}
	poor := map[string]float64{"false_promotion_rate": 0.2, "calibration_ece": 0.1, "contradiction_recovery_rate": 0.8, "stale_handling": 0.8, "task_success": 0.92}
	if r := of(poor, good); !gateOf(r, "stage3.gain").Met || !gateOf(r, "stage3.task_success").Met {
		t.Errorf("three gains and two points lost: %+v", r.Gates)
	}
	if r := of(good, poor); gateOf(r, "stage3.gain").Met {
		t.Errorf("losses count as gains: %+v", r.Compared)
	}
	if r := of(poor, but(good, "task_success", 0.88)); gateOf(r, "stage3.task_success").Met {
		t.Error("four points lost are allowed")
	}
	none := maps.Clone(poor)
	delete(none, "false_promotion_rate")
	if r := of(none, good); gateOf(r, "stage3.gain").Met {
		t.Error("a figure that is not there counts")
	}
	if r := of(but(poor, "false_promotion_rate", 0), good); gateOf(r, "stage3.gain").Met {
		t.Error("worse than nothing counts")
	}
}
