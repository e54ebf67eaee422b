package draft

import (
	"slices"
	"strings"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/policy"
)

func set(words string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(words) {
		out[w] = true
	}
	return out
}

var (
	// reading are verbs of tools that look.
	reading = set(`get list read search find describe show view query lookup check inspect browse explain compare validate preview retrieve fetch
		summarize analyze observe discover calculate convert echo`)
	// tells are those by which a server describes one.
	tells = set(`gets lists reads searches finds describes shows views queries checks explains retrieves returns fetches counts`)
	// looking are nouns by which tools that look are called. A verb beside one goes
	// first, wherever it stands.
	looking = set(`status stat stats info tree diff blame count counts whoami ping health help docs references definition definitions symbols
		diagnostics history head logs lists views queries searches checks returns`)
	// acting are those of tools that do something, by what it can be.
	acting = map[policy.Effect]map[string]bool{
		policy.Write: set(`create creates add adds new make makes write writes edit edits update updates set sets put patch append insert upsert save saves move
			rename copy close reopen merge commit rebase checkout revert approve assign book cancel start starts stop stops restart run runs exec
			execute executes eval evaluate click type fill press drag drop hover select navigate install deploy apply scale enable disable lock unlock
			trigger toggle archive restore import sync register mark star open switch init handle resize print generate build record change modify
			replace return log increment rotate swap attach detach unlink subscribe unsubscribe unassign rerun retry checkin signin signup`),
		policy.Delete:   set(`delete deletes remove removes drop purge clear clears truncate destroy erase kill uninstall reset wipe prune cancel overwrite flush forget expire dismiss unset`),
		policy.Send:     set(`send sends post posts reply replies publish share shares invite invites notify mail email message comment submit push upload tweet dial call forward handle fork`),
		policy.Transfer: set(`pay pays transfer transfers charge refund buy sell order withdraw donate`),
		policy.Auth:     set(`grant revoke login logout auth authorize authenticate impersonate permit`),
		policy.Egress:   set(`navigate open crawl scrape download clone pull goto`),
	}
	// nouns are those of them that behind another verb say what it is done to.
	nouns = set(`pull commit message comment mail email order post call share fork record print mark star set change build copy move note patch switch type log return`)
	// programs are arguments that are run, whatever the tool is called.
	programs = set(`sql statement command cmd script code expression program shell function`)
	// texts are arguments that hold what somebody reads.
	texts = set(`body text content contents message description comment title subject summary note notes caption details reason observation observations markdown`)
	// grants are what decides who may do what, and is not picked from a list unasked.
	grants = set(`visibility permission permissions role scope access method force mode private public`)
	// counts are numbers of how many.
	counts = set(`limit count page size per offset depth max min top head tail lines timeout delay width height`)
)

// acts are the effects of a word.
func acts(word string) (e policy.Effect) {
	for effect, words := range acting {
		if words[word] {
			e |= effect
		}
	}
	return e
}

// reads reports whether a tool is drafted as a read: the first verb of its name is one
// that looks, or it has none, and is called by a noun of one or said to look, and the
// server begins to describe it by no verb that does something. What runs what it is
// given is none.
func reads(t *gate.Tool, said string, args []leaf) bool {
	a := strictjson.Get(t.Raw, "annotations")
	hint := func(name string) string { return string(strictjson.Get(a, name)) }
	if hint("readOnlyHint") == "false" || hint("destructiveHint") == "true" {
		return false
	}
	for _, arg := range args {
		if arg.mayBeText() && arg.isProgram() {
			return false
		}
	}
	words := text.NameWords(t.Name)
	noun := false
	for i, w := range words {
		switch {
		case reading[w]:
			return !actsToo(words[i:])
		case looking[w], w == "log" && i == len(words)-1: // git_log, but not log_expense
			noun = true
		case acts(w) != 0:
			return false
		}
	}
	words = append(text.NameWords(said), "")
	first := words[0]
	if acts(first) != 0 && first != "return" || actsToo(words[:min(len(words), 4)]) {
		return false
	}
	return noun || hint("readOnlyHint") == "true" || reading[first] || tells[first]
}

// actsToo reports whether words that begin with one that looks go on to something else:
// check in, fetch and forward.
func actsToo(words []string) bool {
	for i, w := range words[1:] {
		last := words[i]
		if (last == "check" || last == "checks") && (w == "in" || w == "out") || (last == "and" || last == "then") && acts(w) != 0 {
			return true
		}
	}
	return false
}

func mentionsSQL(schema []byte) bool {
	said, _ := strictjson.Text(strictjson.Get(schema, "description"))
	words := text.NameWords(said)
	return slices.Contains(words, "sql") || slices.Contains(words, "cypher")
}

// effect is what a tool that is no read can do, by the verbs of its name and by what
// the server admits; where nothing says, it is all that the user would mind.
func effect(t *gate.Tool) (e policy.Effect) {
	for _, w := range text.NameWords(t.Name) {
		if e == 0 || !nouns[w] {
			e |= acts(w)
		}
	}
	if e == 0 {
		e = policy.Write | policy.Send | policy.Delete
	}
	if string(strictjson.Get(strictjson.Get(t.Raw, "annotations"), "destructiveHint")) == "true" {
		e |= policy.Delete
	}
	return e
}
