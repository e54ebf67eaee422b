package draft

import (
	"slices"
	"strings"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/policy"
)

// acts are the effects of a word.
func acts(word string) (e policy.Effect) {
	for i, name := range policy.EveryEffect.Names() {
		if effect := policy.Effect(1 << i); effect != policy.Read && policy.Called(word, name) {
			e |= effect
		}
	}
	return e
}

// reads reports whether a tool is drafted as a read: its name says that it reads, and
// the first sentence of its description not that it acts as well. What runs what it is
// given is none.
func reads(t *gate.Tool, said string, args []leaf) bool {
	if hint(t, "readOnlyHint") == "false" || hint(t, "destructiveHint") == "true" {
		return false
	}
	for _, arg := range args {
		if arg.mayBeText() && arg.isProgram() {
			return false
		}
	}
	name := text.NameWords(t.Name)
	for i, w := range name {
		if policy.Called(w, "read") && !(i == len(name)-1 && policy.Called(w, "look")) {
			return looksAt(w, name[i+1:]) && !slices.ContainsFunc(name[:i], func(w string) bool { return acts(w) != 0 }) && !does(said, name)
		}
	}
	// What is called by nouns does what an argument says.
	told := slices.ContainsFunc(args, func(a leaf) bool { return a.ends("doing") })
	return !told && calledAsRead(name, text.NameWords(t.Server), hint(t, "readOnlyHint") == "true") && !does(said, name)
}

// calledAsRead reports whether a name without a verb that looks is made of nouns by
// which tools are called that do, each word known. That a server calls it read-only lets
// more nouns end such a name, and words stand before them that nobody knows, or a verb
// that does one or the other.
func calledAsRead(name, server []string, hint bool) bool {
	known, look, last := true, false, len(name)-1
	for i, w := range name {
		switch {
		case policy.Called(w, "look") && (w != "log" || i == last): // git_log, but not log_expense
			look = true
		case hint && (i < last && policy.Called(w, "either") || i == last && policy.Called(strings.TrimSuffix(w, "s"), "look-last")):
		case acts(w) != 0:
			return false
		case !policy.Called(w, "beside") && !plural(w) && len(w) > 1 && (i >= len(server) || server[i] != w):
			known = false
		}
	}
	if !hint || last < 0 {
		return look && known
	}
	return policy.Called(name[last], "look") || policy.Called(strings.TrimSuffix(name[last], "s"), "look-last")
}

// plural reports whether a word nobody knows is a plural, and so no verb.
func plural(w string) bool {
	return len(w) > 3 && w[len(w)-1] == 's' && !strings.ContainsRune("sui", rune(w[len(w)-2]))
}

// looksAt reports whether what stands behind a verb that looks is what is looked at:
// no verb that acts, but where it is a noun too, and nothing behind an "and".
func looksAt(verb string, behind []string) bool {
	for i, w := range behind {
		before := verb
		if i > 0 {
			before = behind[i-1]
		}
		switch {
		case acts(w) != 0 && !nounToo(w), i == 0 && slices.Contains(particles[verb], w):
			return false
		case joins(before) && (acts(w) != 0 || i == 1 && !policy.Called(w, "read")): // check_and_pay, search_and_kick
			return false
		}
	}
	return true
}

// particles make another verb of one that looks.
var particles = map[string][]string{"check": {"in", "out", "off"}, "checks": {"in", "out", "off"}, "count": {"down"}}

// nounToo reports whether a verb that acts may be what another acts upon.
func nounToo(w string) bool { return policy.Called(w, "noun") || plural(w) }

func joins(w string) bool { return w == "and" || w == "then" || w == "or" }

var (
	sentence = text.Pattern(`[.!?]\s+\P{Ll}|\n\s*\n`)
	commas   = strings.NewReplacer(",", " and ", ";", " and ", "&", " and ", "/", " and ", "-", "x") // which makes one word of two
	objects  = []string{"a", "an", "the", "it", "its", "them", "him", "her", "this", "that", "these", "those", "your", "their", "one"}
)

// does reports whether a description's first sentence says that something is done: where
// it begins, or behind an "and" or a comma. What is a noun too is a verb before what it is
// done to: post it. To begin with getting something from somewhere is no act, nor is a
// verb of either kind that the name has.
func does(said string, name []string) bool {
	first := sentence().Split(strings.TrimSpace(said), 2)[0]
	ws := slices.DeleteFunc(text.NameWords(commas.Replace(first)), func(w string) bool {
		return strings.HasSuffix(w, "ly") && acts(w) == 0 || w == "also" || w == "to"
	})
	for i, w := range ws {
		if i+1 < len(ws) && slices.Contains(particles[w], ws[i+1]) {
			return true
		}
		if i == 0 && policy.Called(w, "either") && slices.Contains(name, w) || i > 0 && !joins(ws[i-1]) || w == "return" || w == "returns" { // what it found
			continue
		}
		if slices.ContainsFunc([]string{w, strings.TrimSuffix(w, "s"), strings.TrimSuffix(w, "es"), strings.TrimSuffix(w, "ies") + "y"}, func(verb string) bool {
			e := acts(verb)
			return e != 0 && (i > 0 || e != policy.Egress) && (!policy.Called(verb, "noun") || i+1 < len(ws) && slices.Contains(objects, ws[i+1]))
		}) {
			return true
		}
	}
	return false
}

func mentionsSQL(schema []byte) bool {
	said, _ := strictjson.Text(strictjson.Get(schema, "description"))
	return slices.ContainsFunc(text.NameWords(said), func(w string) bool { return w == "sql" || w == "cypher" })
}

// effect is what a tool that is no read can do, by the verbs of its name and by whether
// that speaks of who may do what; where nothing says, it is all that the user would mind.
// said is what the name says of it.
func effect(name []string) (e, said policy.Effect) {
	verb := false
	for i, w := range name {
		if !verb || !nounToo(w) {
			e |= acts(w)
		} else if policy.Called(name[i-1], "makes") { // create_refund
			e |= acts(w) & (policy.Transfer | policy.Auth)
		}
		verb = verb || e != 0 || policy.Called(w, "read") && looksAt(w, name[i+1:])
	}
	if said = e; e == 0 {
		e = policy.Write | policy.Send | policy.Delete
	}
	if slices.ContainsFunc(name, func(w string) bool { return policy.Called(w, "access") }) {
		e |= policy.Auth
	}
	return e, said
}

func hint(t *gate.Tool, name string) string {
	return string(strictjson.Get(strictjson.Get(t.Raw, "annotations"), name))
}
