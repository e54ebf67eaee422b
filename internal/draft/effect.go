package draft

import (
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
	// reading are verbs, and nouns used as such, of tools that look.
	reading = set(`get gets list lists read reads search searches find finds describe describes show shows view views query queries lookup count
		counts check checks status stat stats info inspect browse tree diff log blame explain explains compare validate preview whoami ping health
		help docs references definition definitions symbols diagnostics history head retrieve retrieves return returns fetch fetches summarize
		analyze observe discover calculate convert echo`)
	// acting are those of tools that do something, by what it can be.
	acting = map[policy.Effect]map[string]bool{
		policy.Write: set(`create creates add adds new make makes write writes edit edits update updates set sets put patch append insert upsert save saves move
			rename copy close reopen merge commit rebase checkout revert approve assign book cancel start starts stop stops restart run runs exec
			execute executes eval evaluate click type fill press drag drop hover select navigate install deploy apply scale enable disable lock unlock
			trigger toggle archive restore import sync register mark star open switch init handle resize print generate build record change modify`),
		policy.Delete:   set(`delete deletes remove removes drop purge clear clears truncate destroy erase kill uninstall reset wipe prune cancel overwrite`),
		policy.Send:     set(`send sends post posts reply replies publish share shares invite invites notify mail email message comment submit push upload tweet dial call forward handle fork`),
		policy.Transfer: set(`pay pays transfer transfers charge refund buy sell order withdraw donate`),
		policy.Auth:     set(`grant revoke login logout auth authorize authenticate impersonate permit`),
		policy.Egress:   set(`navigate open crawl scrape download clone pull goto`),
	}
	// nouns are those of them that behind another verb say what it is done to.
	nouns = set(`pull commit message comment mail email order post call share fork record print mark star set change build copy move note patch switch type`)
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
// that looks, or it has none, and the server says that it looks and begins to describe
// it by no verb that does something. What runs what it is given is none.
func reads(t *gate.Tool, said string, args []leaf) bool {
	a := strictjson.Get(t.Raw, "annotations")
	hint := func(name string) string { return string(strictjson.Get(a, name)) }
	if hint("readOnlyHint") == "false" || hint("destructiveHint") == "true" {
		return false
	}
	for _, arg := range args {
		if arg.kind() == "string" && (arg.says(programs) || mentionsSQL(arg)) {
			return false
		}
	}
	for _, w := range text.NameWords(t.Name) {
		switch {
		case reading[w]:
			return true
		case acts(w) != 0:
			return false
		}
	}
	first := ""
	if words := text.NameWords(said); len(words) > 0 {
		first = words[0]
	}
	return acts(first) == 0 && (hint("readOnlyHint") == "true" || reading[first])
}

func mentionsSQL(a leaf) bool {
	said, _ := strictjson.Text(strictjson.Get(a.schema, "description"))
	for _, w := range text.NameWords(said) {
		if w == "sql" || w == "cypher" {
			return true
		}
	}
	return false
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
