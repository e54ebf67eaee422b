package memory

import (
	"fmt"
	"regexp"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/memory"
)

// systems are the columns of the result, in their order.
func systems(o *Options) ([]System, error) {
	v1, err := o.policy("v1")
	if err != nil {
		return nil, err
	}
	v01q, err := o.policy("v01q")
	if err != nil {
		return nil, err
	}
	governed := func(name, how, profile string, p *memory.Policy, a adapter) System {
		return System{Name: name, How: how, Policy: p.Hash(), source: p.Source(), profile: profile, make: func(r *run, o *Options) system { return newGoverned(r, p, &o.Memory, a) }}
	}
	var failed error
	edited := func(name string, edits ...string) *memory.Policy {
		p, err := edit(v1, name, edits...)
		if err != nil && failed == nil {
			failed = err
		}
		if p == nil {
			p = v1
		}
		return p
	}
	out := []System{
		{Name: B1, How: "BM25 over the texts of all observations; of the ten best hits the newest that holds a value of the slot", make: newRawLog},
		{Name: B2, How: "the last three sentences a slot was supported by; the value most of them have, the newest of equals", make: newSummary},
		{Name: B3, How: "a map from name and predicate to value; the last write wins", make: newKeyValue},
		{Name: B4, How: "entities joined by name; of a slot's values the one that holds from the newest time, whoever said it", make: newGraph},
		governed(B5, "package memory under profile v1", "v1", v1, adapter{logged: true}),
		governed(B501, "package memory under profile v01q, the origin's figures", "v01q", v01q, adapter{logged: true}),
		governed(A1, "policy v1 in which whatever has support is accepted at once: thresholds.accepted_* and by_class.* at nothing, flags.low_trust and flags.by_class off", "",
			edited(A1, "thresholds.accepted_confidence 0", "thresholds.accepted_groups 0", "thresholds.accepted_contradiction 1", "thresholds.accepted_freshness 0.20",
				"flags.low_trust false", "flags.by_class false", "flags.time_only_lowers false", "by_class.self_report { confidence: 0, groups: 0, test: false }"), adapter{}),
		governed(A2, "policy v1 with flags.weights, flags.eligibility and flags.grounded off, and an adapter: every observation, the agent's own too, comes in as a house tool's (level 2), of the group it had", "",
			edited(A2, "flags.weights false", "flags.eligibility false", "flags.grounded false"), adapter{capture: sameWeight}),
		governed(A3, "policy v1 with no class pooled, and an adapter: every observation comes from a source of its own, with a group of its own", "",
			unpooled(edited), adapter{capture: ownGroup}),
		governed(A4, "policy v1 in which age counts for nothing: confidence.staleness_* and every freshness threshold at 0", "",
			edited(A4, "confidence.staleness_multiplier 0", "confidence.staleness_cap 0", "thresholds.accepted_freshness 0", "thresholds.deprecated_freshness 0", "promotion { freshness: 0 }"), adapter{}),
		governed(A5, "policy v1, and an adapter: no test is proposed and no result of one is reported", "", v1,
			adapter{drops: func(tool string) bool { return tool == memory.ToolProposeTest || tool == memory.ToolTestResult }}),
		governed(A6, "policy v1, and an adapter: whatever is proposed is canonical at once, and nothing is consolidated", "", v1,
			adapter{oneLayer: true, drops: func(tool string) bool { return tool == memory.ToolConsolidate }}),
		governed(A7, "policy v1, and an adapter: the value an agent last proposed or supported is written to canonical memory as it is, and read from there", "", v1, adapter{direct: true, oneLayer: true}),
	}
	return out, failed
}

// edit returns a policy with other constants. An edit is "section.key value";
// one that changes nothing is a mistake.
func edit(p *memory.Policy, name string, edits ...string) (*memory.Policy, error) {
	text := string(p.Source())
	for _, e := range append([]string{" profile " + strings.ToLower(name)}, edits...) {
		path, value, _ := strings.Cut(strings.TrimSpace(e), " ")
		section, key, nested := strings.Cut(path, ".")
		pattern := `(?m)^` + section + `: +(?:\{[^}\n]*\}|[^ #\n]+)`
		put := section + ": " + value
		if nested {
			pattern = `(?ms)^(` + section + `:.*?^  )` + key + `: +(\{[^}\n]*\}|[^ #\n]+)`
			put = "${1}" + key + ": " + value
		}
		re := regexp.MustCompile(pattern)
		if at := re.FindStringIndex(text); at != nil {
			text = text[:at[0]] + re.ReplaceAllString(text[at[0]:at[1]], put) + text[at[1]:]
		} else {
			return nil, fmt.Errorf("the policy has no %s to edit for %s", path, name)
		}
	}
	q, faults := memory.ParsePolicy(name, []byte(text))
	if len(faults) > 0 {
		return nil, fmt.Errorf("the policy of %s: %s", name, faults[0])
	}
	return q, nil
}

// unpooled is the policy of A3.
func unpooled(edited func(string, ...string) *memory.Policy) *memory.Policy {
	var edits []string
	for class, worth := range map[string]string{
		"user_attested_hardened": "level: 1, reliability: 0.40", "tool_external": "level: 1, reliability: 0.40", "document": "level: 1, reliability: 0.40",
		"web": "level: 1, reliability: 0.40", "peer_agent": "level: 1, reliability: 0.40", "agent_inference": "level: 0, reliability: 0.20", "import": "level: 1, reliability: 0.40",
	} {
		edits = append(edits, "trust_classes."+class+" { "+worth+", pooled: false }")
	}
	return edited(A3, edits...)
}

// sameWeight makes a house tool of whoever speaks, in the group the class has.
func sameWeight(g *governed, s *source, c *memory.Captured) {
	family, group := "agent", "pool:agent_inference"
	if s != nil {
		family, _, _ = strings.Cut(s.ID.S, "/")
		switch {
		case s.Group.Given():
			group = s.Group.S
		case s.label == writ.External || s.label == writ.Party:
			group = "pool:" + string(classOf(s)) // as they were
		default:
			group = "tool:" + family
		}
		family = s.ID.S
	}
	c.Label, c.Class, c.Source = writ.System, memory.ClassToolInternal, "flat/"+family
	g.once(c.Source, group)
}

// ownGroup makes a source of its own of every observation.
func ownGroup(g *governed, s *source, c *memory.Captured) {
	if s == nil {
		c.Label, c.Class, c.Source = writ.Model, memory.ClassAgentInference, "agent"
	}
	c.Source = fmt.Sprintf("%s#%d", c.Source, g.seen)
	of := &source{label: c.Label}
	of.Class.S = string(c.Class)
	if s != nil {
		of.Reliability = s.Reliability
	}
	g.register(c.Source, of, fmt.Sprintf("group:%d", g.seen))
}

// once registers a house tool the first time it speaks.
func (g *governed) once(id, group string) {
	if g.src[id] == nil {
		s := &source{label: writ.System}
		g.src[id] = s
		g.register(id, s, group)
	}
}
