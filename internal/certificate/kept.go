package certificate

import (
	"slices"
	"strconv"
	"strings"

	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// keptCall is the rule of a value of a call that a person allowed from now on, as it is or
// whatever its free texts say.
const keptCall = "grown:call"

// kept reports whether a line holds the call that a value is of. A free text rests on one
// that has the texts too.
func (c *call) kept(l *leaf) bool {
	switch {
	case l.answer || c.isPage(l):
		return false
	case l.role == policy.Content && !l.key:
		return c.keptThere && !c.free(l.path) || c.free(l.path) && c.keptWith(true)
	case l.role == policy.Control && !l.key:
		return c.keptThere && l.rule != nil && slices.ContainsFunc(l.rule.From, func(s policy.Source) bool { return s.Kind == policy.FromApproval })
	case l.key || l.names() || l.role == policy.Amount || l.role == policy.TimeRole:
		return c.keptThere || c.keptWith(false) || c.keptWith(true)
	}
	return false
}

// isKeepable reports whether a call may be kept at all.
func (c *call) isKeepable() bool {
	const never = policy.Delete | policy.Transfer | policy.Auth
	return c.contract != nil && !c.strict && c.method == policy.CallTool && !c.Answers.Exists() && c.effect&^c.contract.Assumed&never == 0
}

// keptOn finds where the call is done, and whether a line holds every call of its tool there.
func (s *Session) keptOn(c *call) {
	if c.contract == nil || len(c.contract.Where) == 0 {
		return
	}
	c.on = s.whereDone(c, true)
	elsewhere := slices.ContainsFunc(c.leaves, func(l *leaf) bool {
		return l.rule != nil && (l.rule.Type == provenance.Path || l.rule.Type == provenance.URL)
	})
	destroys := slices.ContainsFunc(c.leaves, func(l *leaf) bool {
		said, _ := l.value.Text()
		if string(l.value.Raw()) == "true" {
			said = l.pointer
		}
		return policy.Destroying(said)
	})
	c.keptThere = c.on != "" && !elsewhere && !destroys && !s.secrets && c.isKeepable() && slices.ContainsFunc(c.contract.Kept, func(line policy.KeptCall) bool { return line.Args == nil && line.On == c.on })
}

// keptWith reports whether a line holds the call, with its free texts or without them.
func (c *call) keptWith(texts bool) bool {
	if !c.isKeepable() {
		return false
	}
	var free []string
	if !texts {
		free = c.texts(c.parts, nil)
		slices.Sort(free)
	}
	return slices.ContainsFunc(c.contract.Kept, func(line policy.KeptCall) bool {
		return line.Args != nil && line.On == c.on && slices.Equal(line.Texts, free) && c.holds(strictjson.Of(line.Args), c.parts, nil, texts)
	})
}

// texts are the pointers of the free texts in a value that are not empty.
func (c *call) texts(v strictjson.Value, path []string) (out []string) {
	for name, m := range v.Members() {
		out = append(out, c.texts(m, append(slices.Clone(path), name))...)
	}
	for i, e := range v.Elements() {
		out = append(out, c.texts(e, append(slices.Clone(path), strconv.Itoa(i)))...)
	}
	if c.isText(v, path) {
		out = append(out, strictjson.Pointer(path))
	}
	return out
}

// isText reports whether a value is a free text that is not empty.
func (c *call) isText(v strictjson.Value, path []string) bool {
	s, _ := v.Text()
	return s != "" && c.free(path) && !(c.isPart(path) && path[1] == "columns")
}

// holds reports whether a line says of a value what it is.
func (c *call) holds(line, v strictjson.Value, path []string, texts bool) bool {
	if line.Kind() != v.Kind() {
		return false
	}
	switch v.Kind() {
	case strictjson.Object:
		n := 0
		for name, m := range v.Members() {
			at := append(slices.Clone(path), name)
			if !texts && c.onlyFree(m, at) {
				continue
			}
			if !line.Get(name).Exists() || !c.holds(line.Get(name), m, at, texts) {
				return false
			}
			n++
		}
		return n == line.Len()
	case strictjson.Array:
		var said []strictjson.Value
		for _, e := range line.Elements() {
			said = append(said, e)
		}
		for i, e := range v.Elements() {
			at := append(slices.Clone(path), strconv.Itoa(i))
			if !texts && c.onlyFree(e, at) {
				continue
			}
			if len(said) == 0 || !c.holds(said[0], e, at, texts) {
				return false
			}
			said = said[1:]
		}
		return len(said) == 0
	}
	a, errA := strictjson.Canonical(line.Raw())
	b, errB := strictjson.Canonical(v.Raw())
	return errA == nil && errB == nil && string(a) == string(b)
}

// onLines reports whether all that is not seen in a value is where its lines end and how
// they are indented.
func onLines(v strictjson.Value) bool {
	s, _ := v.Text()
	s = strings.NewReplacer("\n", " ", "\t", " ").Replace(s)
	return provenance.CheckText(strictjson.StringOf(s)) == ""
}

// onlyFree reports whether a value holds free texts and nothing else.
func (c *call) onlyFree(v strictjson.Value, path []string) bool {
	if v.Len() == 0 {
		return c.isText(v, path)
	}
	for name, m := range v.Members() {
		if !c.onlyFree(m, append(slices.Clone(path), name)) {
			return false
		}
	}
	for i, e := range v.Elements() {
		if !c.onlyFree(e, append(slices.Clone(path), strconv.Itoa(i))) {
			return false
		}
	}
	return true
}

// free reports whether a contract lets free text stand in a place that no key leads to
// which the caller chose, and has it judged.
func (c *call) free(path []string) bool {
	r := c.ruleAt(path)
	return !c.strict && r != nil && r.Role == policy.Content && r.Composed &&
		!slices.ContainsFunc(c.leaves, func(l *leaf) bool {
			return l.key && len(l.path) <= len(path) && slices.Equal(l.path, path[:len(l.path)])
		})
}
