package certificate

import (
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/calendar"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// The reference model of a decision: an act is allowed if and only if some certificate
// of it verifies. It tries every certificate there could be: of each value every rule,
// at every place that was seen and every stretch of what the user typed. The world has
// nothing that is for the replay alone: no free text that is read back (R38), no budget,
// no more refusals than count as guesses.

const worldPolicy = `
pins: optional
collections: { coding: {}, user: { closed: true, called: { carol-long: [the chief, Caro], bobby: [Robert, Caro Bob] } }, mail: {}, row: { closed: true }, room: {}, dir: { closed: true }, part: { closed: true }, brand: { closed: true }, code: { closed: true }, twig: {}, file: { closed: true }, ticket: { closed: true }, slip: {}, page: {}, head: {} }
tools:
  a/list: { effect: read, outputs: [
    { at: /users/*, label: system, collection: user },
    { at: /mails/*, label: system, collection: mail },
    { at: /from/*, label: party, collection: user }, { at: /nick/*, label: party },
    { at: /ids/*, label: system, type: id } ] }
  a/all: { effect: read, outputs: [ { at: /users/*, label: system, collection: user, authoritative: true } ] }
  a/rows: { effect: read, outputs: [
    { at: /rows/*/id, label: system, collection: row, authoritative: true, readers: /shared }, { at: /rows/*/title, label: external, matches: /q }, { at: /rows/*/name, label: system, names: true }, { at: /rows/*/city, label: system }, { at: /rows/*/code, label: system, unique: true, collection: coding },
    { at: /rows/*/parts/*, label: system, collection: part }, { at: /rows/*/brand, label: system, collection: brand } ] }
  a/whose: { effect: read, outputs: [ { at: /row, label: system, collection: row, looked_up: /called } ] }
  a/table: { effect: read, outputs: [
    { at: /table, keys: true, label: system, collection: row, authoritative: true }, { at: /table/*/title, label: external },
    { at: /table/*/parts/*, label: system, collection: part }, { at: /table/*/brand, label: system, collection: brand },
    { at: /lone, keys: true, label: system, collection: row }, { at: /lone/*, label: system, collection: part } ] }
  a/brands: { effect: read, outputs: [
    { at: /brands/*/id, label: system, collection: brand }, { at: /brands/*/said, label: external, collection: brand },
    { at: /brands/*/parts/*, label: system, collection: part }, { at: /brands/*/more/*/id, label: system, collection: brand },
    { at: /brands/*/more/*/part, label: system, collection: part } ] }
  a/doc: { effect: read }
  a/codes: { effect: read, outputs: [ { at: /codes/*, label: system, collection: code, one_shot: true, lifetime: 10m } ] }
  a/mails: { effect: read, outputs: [ { at: /mails/*/from, label: party, type: email }, { at: /mails/*/sum, label: external, type: decimal } ] }
  a/dirs: { effect: read, outputs: [ { at: /dirs/*, label: system, type: path, collection: dir }, { at: /names/*, label: system, type: name } ] }
  a/put: { effect: write, args: {
    /user: { role: target, collection: user }, /mail: { role: selector, collection: mail },
    /word: { role: content, from: [const: ["alpha"], { const: ["beta77"], phrases: [make a twig, grow a twig] }] }, /kind: { role: enum }, /n: { role: amount, type: id, words: [user] } } }
  a/make: { effect: write, args: { /user: { role: target, collection: user, from: [output] } }, outputs: [ { at: /users/*, label: system, collection: user, creates: true } ] }
  a/take: { effect: write, args: { /mail: { role: selector, collection: mail } }, outputs: [ { at: /users/*, label: system, collection: user } ] }
  a/drop: { effect: delete, args: { /row: { role: selector, collection: row }, /user: { role: selector, collection: user } } }
  a/open: { effect: write, args: { /path: { role: target, type: path, collection: dir, from: [user, output, derived: path_join, derived: typed_in] } } }
  b/move: { effect: write, args: { /row: { role: selector, collection: row }, /part: { role: selector, collection: part } }, same_record: [/row, /part] }
  b/pair: { effect: write, args: { /old/*: { role: selector, collection: row }, /new/*: { role: selector, collection: part, of: /old/*, by: brand } } }
  b/use: { effect: write, args: { /code: { role: selector, collection: code } } }
  b/settle: { effect: write, args: { /sum: { role: amount, type: decimal, from: [said_by: a/mails#/mails/*/from] } } }
  b/pay: { effect: transfer, no_args: allow, args: { /sums/*: { role: amount, type: decimal, units: [bags], from: [user, derived: due] } } }
  b/when: { effect: write, no_args: allow, args: { /at: { role: time } } }
  b/soon: { effect: write, no_args: allow, args: { /at: { role: time, any_hour: true } } }
  b/till: { effect: write, no_args: allow, args: { /at: { role: time, any_hour: true, ends_day: true } } }
  a/rooms: { effect: read, outputs: [ { at: /rooms/*/id, label: system, collection: room, authoritative: true }, { at: /rooms/*/name, label: system, names: true }, { at: /rooms/*/title, label: external, matches: /q } ] }
  n/post: { effect: send, args: { /room: { role: target, collection: room }, /text: { role: content, content: open } } }
  b/shift: { effect: [write, send], notice: true, args: { /room: { role: selector, collection: room }, /text: { role: content, content: open } } }
  b/copy: { effect: write, args: { /part: { role: target, from: [{ of_named: 'a/rows#/rows/*/parts/*', phrases: [same parts as] }] } } }
  b/enrol: { effect: write, args: { /user: { role: target, collection: user, from: [user], makes: true }, /at: { role: target, collection: mail, from: [user] } } }
  b/jot: { effect: write, args: { /user: { role: target, collection: user, from: [output] }, /note: { role: content, content: local } } }
  b/fork: { effect: write, args: { /owner: { role: target }, /repo: { role: target } }, composites: ['{/owner}/{/repo}'] }
  b/land: { effect: send, args: { /owner: { role: target, from: [user] }, /repo: { role: target, from: [user] }, /pr: { role: target, type: integer, words: [land, land pr], from: [user] },
    /issue: { role: selector, type: integer, words: ['#', issue, issues, shut, dup of], from: [user] }, /state: { role: control, from: [{ const: [shut], phrases: [shut, shut issue] }] } }, composites: ['{/owner}/{/repo}', '{/owner}/{/repo}#{/pr}', '{/owner}/{/repo}#{/issue}'] }
  n/note: { effect: send, args: { /user: { role: target, collection: user }, /text: { role: content, content: open } } }
  n/only: { effect: send, args: { /user: { role: target, collection: user, from: [output: 'a/list#/nick/*', output: 'a/list#/from/*', { output: 'a/list#/users/*', phrases: [make a twig, grow a twig] }] } } }
  n/grant: { effect: [send, auth], args: { /user: { role: target, collection: user } } }
  n/title: { effect: write, no_args: allow, args: { /text: { role: content, content: open, header: true } } }
  n/append: { effect: write, args: { /row: { role: target, collection: row }, /line: { role: content, content: open } } }
  b/reply: { effect: send, args: { /mail: { role: selector, collection: mail }, /user: { role: selector, collection: user } } }
  w/fetch: { effect: egress, args: { /url: { role: target, type: url, from: [seen] } } }
  b/tell: { effect: send, args: { /who: { role: target } } }
  b/name: { effect: write, args: { /row: { role: selector, collection: row }, /who: { role: target, from: [output] } }, same_record: [/row, /who] }
  n/sprout: { effect: write, args: { /user: { role: target, collection: user }, /at: { role: selector, collection: twig, from: [output] }, /twig: { role: target, collection: twig, from: [user, { derived: fresh, phrases: [make a twig, grow a twig] }], begins: [fix-, row/], makes: true, in: [/user] } } }
  n/graft: { effect: [write, send], args: { /user: { role: target, collection: user }, /twig: { role: target, collection: twig, from: [output] }, /text: { role: content, content: open } } }
  n/prune: { effect: write, args: { /user: { role: control, from: [user, const: [bobby]] }, /twig: { role: target, collection: twig, from: [output] } } }
  f/names: { effect: read, outputs: [ { in: text, extract: lines, pattern: '^(.+)$', join: /in, label: system, type: path, collection: file, authoritative: true } ] }
  f/get: { effect: read, args: { /file: { role: selector, type: path, collection: file, shows: true } } }
  f/new: { effect: write, args: { /file: { role: target, type: path, collection: file, from: [user, output, derived: fresh], extensions: [.md, ''] } } }
  f/edit: { effect: write, args: { /file: { role: target, type: path, collection: file, from: [output, derived: path_join] } } }
  g/tickets: { effect: read, outputs: [ { at: /tickets/*/id, label: system, collection: ticket, authoritative: true }, { at: /tickets/*/slip, label: system, collection: slip, authoritative: true }, { at: /tickets/*/desk, label: system, authoritative: true }, { at: /tickets/*/said/desk, label: external } ] }
  g/close: { effect: write, args: { /desk: { role: selector, from: [const: ["d-one", "d-two", ""]] }, /ticket: { role: target, collection: ticket, agrees: [/desk] } } }
  g/answer: { effect: send, args: { /desk: { role: target, from: [const: ["d-one", "d-two", ""]] }, /slip: { role: selector, collection: slip, agrees: [/desk] }, /text: { role: content, content: open } } }
  g/hand: { effect: send, args: { /desk: { role: target, from: [const: ["d-one"]] }, /ticket: { role: target, collection: ticket, agrees: [/desk] }, /text: { role: content, content: open } } }
  p/open: { effect: egress, args: { /url: { role: target, type: url, from: [user] } }, outputs: [ { at: /pages/*, label: system, type: integer, collection: page, creates: true } ] }
  p/back: { effect: write, no_args: allow, args: { /page: { role: content, content: open } } }
  p/type: { effect: [write, send], where: [p/open#/url, p/back], among: /page, args: { /page: { role: selector, type: integer, collection: page, from: [output] }, /text: { role: content, from: [user], orders: [type] } } }
  p/push: { effect: send, no_args: user, phrases: [push it.], args: { /branch: { role: target, from: [user, const: ["alpha"]], orders: [push] }, /at: { role: selector, from: [user] } } }
  p/shut: { effect: write, no_args: user, phrases: [push it.], args: { /branch: { role: control, from: [user] } } }
  h/at: { effect: read, outputs: [ { at: /heads/*, label: system, collection: head, authoritative: true, location: true } ] }
  h/leave: { effect: write, no_args: allow, args: { /head: { role: content, content: open } } }
  h/take: { effect: write, args: { /head: { role: selector, from: [{ output: 'h/at#/heads/*', phrases: [push it], until: [h/leave] }] } } }
  d/run: { parts: { /query: sqlite }, no_args: allow, args: { /query: { role: query, from: [user] }, /query/adds: { role: control, from: [const: [row]] } }, cases: [
    { /query/adds: [null], effect: [write, delete] }, { /query/adds: [row], effect: write, args: { /query/table: { role: target, collection: coding, from: [user], orders: [add … to] }, /query/columns/*: { role: content, content: open }, /query/values/*/*: { role: content, content: open } } } ] }
  q/open: { effect: egress, args: { /url: { role: target, type: url, from: [user] } } }
  q/look: { effect: read, outputs: [ { at: /links/*, label: external, type: url, location: true } ] }
  q/click: { effect: [write, send], where: [q/open#/url, q/click], args: { /file: { role: target, type: path, from: [user] } } }
  q/key: { effect: [write, send], where: [q/open#/url, q/click], no_args: allow, args: { /key: { role: control, from: [const: [Tab], approval] }, /text: { role: content, content: open } } }
  q/page: { effect: read, outputs: [ { in: text, extract: start, pattern: '### Page\n- Page URL: (\S+)\n', label: external, type: url, location: true, elements: true } ] }
  q/type: { effect: [write, send], no_args: allow, where: [q/open#/url, q/click], args: { /text: { role: content, from: [user], orders: [type] }, /on: { role: control, from: [const: [true, false]] } } }
  q/press: { effect: [write, send], where: [q/open#/url, q/click, q/press], args: { /ref: { role: target, from: [user, { derived: element, phrases: [book, send it?] }], orders: [click], words: [button] } } }
  c/list: { effect: read, outputs: [ { at: /whom/*, label: external } ] }
  c/call: { effect: write, args: { /whom: { role: target, from: [user] } } }
grown:
  - { tool: b/tell, arg: /who, from: "a/rows#/rows/*/title", writes: ours }
  - { tool: b/name, arg: /who, from: "a/rows#/rows/*/title", writes: ours }
  - { tool: b/tell, arg: /who, from: "a/doc#/rows/*/title", in: text, writes: ours }
  - { tool: a/rows, arg: /q, from: "a/rows#/rows/*/title", writes: ours }
  - { tool: n/note, call: { user: bobby } }
  - { tool: n/note, call: { user: carol-long, text: "see https://one.example/a" } }
  - { tool: b/reply, call: { mail: alpha, user: bobby } }
  - { tool: b/reply, call: { mail: alpha } }
  - { tool: b/move, call: { row: row-0001, part: part-2 } }
  - { tool: b/tell, call: { who: bobby } }
  - { tool: b/tell, call: { who: 13 } }
  - { tool: q/click, on: shop.example }
  - { tool: q/click, call: { ref: e1 }, on: bank.example }
  - { tool: q/key, call: { key: Enter }, on: shop.example }
  - { tool: q/key, on: bank.example }
  - { tool: d/run, call: { query: { adds: row, columns: [a, b], table: kept } }, texts: [/query/values/0/0, /query/values/0/1] }
`

// worldLine is kept after a person said yes to what it would let pass, and taken back.
const worldLine = `  - { tool: c/call, arg: /whom, from: "c/list#/whom/*", writes: ours }
`

var worldArguments = map[string][]string{
	"a/list": {"q", "on"}, "a/all": {"q"}, "a/rows": {"q"}, "a/doc": {"q"}, "a/table": {}, "a/dirs": {"q"}, "a/whose": {"called", "q"},
	"a/put": {"user", "mail", "word", "kind", "n"}, "a/make": {"user"}, "a/take": {"mail"}, "a/drop": {"row", "user"}, "a/open": {"path"}, "a/codes": {}, "a/mails": {},
	"a/brands": {}, "b/move": {"row", "part"}, "b/pair": {"old", "new"}, "b/use": {"code"}, "b/settle": {"sum"}, "b/pay": {"sums"}, "b/when": {"at"}, "b/soon": {"at"}, "b/till": {"at"}, "a/rooms": {"q"}, "n/post": {"room", "text"}, "b/shift": {"room", "text"}, "b/copy": {"part"}, "b/fork": {"owner", "repo"}, "b/land": {"owner", "repo", "pr", "issue", "state"}, "b/enrol": {"user", "at"}, "b/jot": {"user", "note"}, "n/note": {"user", "text"}, "n/append": {"row", "line"}, "n/title": {"text"}, "n/only": {"user"}, "n/sprout": {"user", "at", "twig"}, "n/graft": {"user", "twig", "text"}, "n/prune": {"user", "twig"}, "n/grant": {"user"},
	"b/reply": {"mail", "user"}, "w/fetch": {"url"}, "b/tell": {"who"}, "b/name": {"row", "who"}, "p/open": {"url"}, "p/back": {"page"}, "p/type": {"page", "text"}, "p/push": {"branch", "at", "more"}, "p/shut": {"branch", "more"}, "q/open": {"url"}, "q/look": {}, "q/page": {"of"}, "q/press": {"ref"}, "q/type": {"text", "on"}, "q/click": {"ref", "file"}, "q/key": {"key", "text"}, "c/list": {}, "c/call": {"whom"}, "f/names": {"in"}, "f/get": {"file"}, "f/new": {"file"}, "f/edit": {"file"}, "g/tickets": {"desk", "q"}, "g/close": {"desk", "ticket"}, "g/answer": {"desk", "slip", "text"}, "g/hand": {"desk", "ticket", "text"},
	"d/run": {"query"}, "h/at": {}, "h/leave": {"head"}, "h/take": {"head"},
}

var worldFields = map[string][]string{
	"a/list": {"users", "mails", "from", "nick", "ids", "other"}, "a/all": {"users", "other"}, "a/rows": {"rows"}, "a/rooms": {"rooms"}, "a/doc": {"rows"}, "a/table": {"table", "lone"}, "a/dirs": {"dirs", "names"},
	"a/codes": {"codes"}, "a/whose": {"row"}, "a/mails": {"letters"}, "a/brands": {"brands"}, "a/make": {"users", "other"}, "a/take": {"users"}, "c/list": {"whom"}, "f/names": {"files"}, "g/tickets": {"tickets"}, "p/open": {"pages"}, "h/at": {"heads"}, "q/look": {"links"}, "s/secret": {"users"},
}

var (
	worldValues = []string{`"bobby"`, `"carol-long"`, `"say bobby now"`, `"x1"`, `"123456"`, `"13"`, `13`, `"alpha"`, `"gamma"`, `1000000`, `1e6`, `true`, `null`, `""`, `[]`, `"Bobby"`, `"carol-long."`, `"bobby…"`, `"@bobby"`, `"@bobby"`}
	worldPages  = []string{`"https://shop.example/a"`, `"https://shop.example/a"`, `"https://bank.example/"`, `"https://www.bank.example/"`, `"about:blank"`}
	worldNew    = []string{`"Dora"`, `"erik-long"`}
	worldRows   = []string{`"row-0001"`, `"row-0002"`, `"Blue lamp"`}
	worldPaths  = []string{`"/srv/a"`, `"/srv/a/x.txt"`, `"/srv/b"`, `"x.txt"`, `"y.md"`, `"/srv/a/y.md"`, `"/srv/a/menu"`}
	worldLinks  = []string{`"https://one.example/a"`, `"see https://one.example/a, and more"`, `"https://two.example/"`, `"one.example/a"`}
	// worldFor is what argument a value of a field would do for.
	worldFor   = map[string]string{"users": "user", "mails": "mail", "from": "user", "nick": "nick", "ids": "n", "row": "row", "rows": "row", "table": "row", "lone": "row", "dirs": "path", "names": "name", "other": "url", "codes": "code", "whom": "whom", "rooms": "room", "tickets": "ticket", "heads": "head"}
	worldWords = []string{"one bags", "another bags", "100 more bags", "25 EUR", "100 euros", "bobby", "carol-long", "say bobby now", "123456", "user 13", "user #13", "issue 13", "see #13", "13", "1000000", "Bobby", "x1", "Blue lamp", "Blue lamp", "blue lamp", "BLUE LAMP", "row-0001", "row-0002",
		"/srv/a", "x.txt in /srv/a", "y.md", "menu", "'menu'", "a/x.txt", "'y.md' into the folder /srv/b", "> bobby", "(carol-long)", "mail gamma.", "25 EUR", "100 euros", "100", "250 EUR",
		"dora", "ask dora", "'carol-long'", "„say bobby now“", "Bobby.", "say carol-long.", "(bobby…)", "ask Bobby", "carol-long.. and", "'Bobby',",
		"octo/hello", "acme/octo.", "octo", "ann@a.example", "ann@a.example", "ben@a.example",
		"user=13", "(user='bobby')", "x=carol-long", "a=b=123456", "'bobby'", "ask Caro", "ask Caro Bob", "'the chief'", "user the chief", "user=bobby src=13", `m="a b" user='bobby'`,
		"tell Anna", "tell Anna", "tell Bob and Anna that", "ask Boris", "Boris Anna", "the Anna", "'anna' and Bob", "row Boris", "row anna.", "row boris anna", "the anna row", "in Anna row", "the Boris Anna row, R-21", "not the Boris row", "R-22", "the row R-22.", "@bobby", "ask '@bobby'", "a@bobby"}
	// worldLandings order by numbers, count with them, or say where.
	worldLandings = []string{"land 13 in octo/hello", "land pr 13 of acme/hello, octo/hello", "land 13 prs of octo/hello", "octo/hello pr 130123", "land 130123 octo/hello", "land 130123 in octo/hello", "shut #13 in octo/hello", "shut issue 13 and 50 of octo/hello",
		"shut #50. issue 13 octo/hello", "in acme/hello shut #13, octo/hello", "in octo/hello land 13 and shut #50", "shut it, issue 13 in acme/hello octo/hello", "shut #13 in the octo/hello repo", "no, leave it", "don't land 13",
		"land octo/hello#13", "land octo/hello#13 at 5pm", "don't land octo/hello#13", "octo/hello#13 is fine", "land octo/hello#13 and acme/hello#50", "shut octo/hello#13, acme/hello#50 and 13", "shut octo/hello#13 and #50",
		"land pr 13 and 50 in octo/hello", "land pr 13 and 50 others octo/hello", "land #13, #50 and 130123 in octo/hello", "land 13, 50 octo/hello", "shut both 13 and 50 in octo/hello", "issues 13, 50 and 130123 are old octo/hello",
		"shut 13 issues octo/hello", "shut 13 octo/hello", "shut 13 and 50 of them octo/hello", "dup of 13 octo/hello", "dup of 13 others octo/hello", "don't shut 13 and 50 octo/hello", "land 13 in octo/hello on my signal", "shut 50, and 13 but keep the branch octo/hello"}
	worldDays    = []string{"on 2027-01-15", "on 2027-01-15", "tomorrow", "at 19:00", "at 19:00", "from 19:00", "for two hours", "at 7 pm or 8 pm", "> at 19:00", "in two hours", "for 30 minutes"}
	worldSums    = []string{`1`, `25`, `25`, `100`, `100`, `7`, `-7`}
	worldTimes   = []string{`"2027-01-15"`, `"2027-01-15T19:00:00"`, `"2027-01-15T21:00:00"`, `"19:00"`, `"21:00"`, `"2027-01-15T20:00:00"`, `"2027-01-15T10:00:00"`, `"2027-01-15T10:30:00"`}
	worldNames   = []string{`"Anna"`, `"Anna"`, `"Bob"`, `"Boris"`, `"anna"`, `"Boris Anna"`}
	worldCodings = []string{`"R-1"`, `"R-21"`, `"R-22"`, `"R-22"`, `"Anna"`, `7`}
	worldParts   = []string{`"part-1"`, `"part-2"`, `"part-3"`, `"part-4"`, `"part-5"`}
	worldBrands  = []string{`"brand-a"`, `"brand-b"`, `"brand-c"`}
	worldRooms   = []string{`"room-0001"`, `"room-0002"`}
	worldTwigs   = []string{`"fix-it"`, `"fix-it"`, `"fix-it"`, `"row/a"`, `"fix-"`, `"fix-a/b/c"`, `"fix-one.example"`, `"fix it"`, `"main"`, `"row/-a"`}
	worldTickets = []string{`"t-0001"`, `"t-0002"`, `"t-0003"`}
	worldDesks   = []string{`"d-one"`, `"d-one"`, `"d-two"`, `""`, `null`}
	worldCodes   = []string{`"481516"`, `"code-2342"`}
	worldSenders = []string{`"ann@a.example"`, `"ben@a.example"`}
	worldTexts   = []string{`"hello"`, `"hello"`, `"hello bobby"`, `"see https://one.example/a"`, `"call 123456"`, `"ask ann@a.example for 1000000"`, `"**so**"`, `"#bobby"`, `"see #13"`, `"hello\nbobby"`, `"=?UTF-8?Q?hello?="`, `""`}
)

type ruleset struct {
	policy    *policy.Policy
	catalogue *gate.Catalogue
}

// world is a session under way, with what the verifier is told of it.
type world struct {
	*rand.Rand
	t         *testing.T
	policy    *policy.Policy
	catalogue *gate.Catalogue
	other     ruleset // with worldLine, or without it
	calls     int     // of c
	named     bool    // somebody was told, whom an act may have called so
	look      bool    // the next call is Writ's own
	yes       bool    // a person said yes to what that line would let pass
	gate      *gate.Session
	told      *Session
	at        time.Time
	n         uint64
	script    []string
	shown     map[string][]string // what results showed, by argument it is one of
	allowed   int
	refused   int
}

func (w *world) pick(from []string) string { return from[w.IntN(len(from))] }

func (w *world) fresh(field string) string {
	switch field {
	case "dirs":
		return w.pick(worldPaths[:3])
	case "names":
		return w.pick(worldPaths[3:5])
	case "files":
		return w.pick([]string{`"x.md"`, `"b"`, `"Y.md"`})
	case "row", "rows", "table", "lone":
		return w.pick(worldRows[:2])
	case "codes":
		return w.pick(worldCodes)
	case "rooms":
		return w.pick(worldRooms)
	case "tickets":
		return w.pick(worldTickets)
	case "pages":
		return w.pick([]string{"1", "2"})
	case "heads":
		return w.pick([]string{`"fix-it"`, `"main"`})
	case "links":
		return w.pick(worldPages)
	case "users", "mails", "from", "ids":
		return w.pick(worldValues)
	}
	return w.value(field)
}

func (w *world) value(name string) string {
	if dirs := w.shown["path"]; name == "path" && len(dirs) > 0 && w.IntN(4) == 0 {
		return strings.TrimSuffix(w.pick(dirs), `"`) + w.pick([]string{`/z.txt"`, `/b/z.txt"`})
	}
	if dirs, names := w.shown["path"], w.shown["name"]; name == "path" && len(dirs) > 0 && len(names) > 0 && w.IntN(2) == 0 {
		return strings.TrimSuffix(w.pick(dirs), `"`) + "/" + strings.TrimPrefix(w.pick(names), `"`)
	}
	if known := w.shown[name]; len(known) > 0 && w.IntN(8) > 0 {
		return w.pick(known)
	}
	switch name {
	case "row", "rows":
		return w.pick(worldRows)
	case "room":
		return w.pick(worldRooms)
	case "path", "dirs", "names":
		return w.pick(worldPaths)
	case "url":
		return w.pick(worldLinks)
	case "on":
		return "true"
	case "called", "nick":
		return w.pick(worldNames)
	case "q":
		return w.pick([]string{`"Blue"`, `"Blue lamp"`, `"2027-01-15"`, w.pick(worldValues)})
	case "n":
		return w.pick([]string{`"25"`, `25`, `100`, `13`, `"bobby"`})
	case "kind":
		return w.pick([]string{`"red"`, `"green"`, `"bobby"`})
	case "other":
		if w.IntN(2) == 0 {
			return w.pick(worldLinks)
		}
	case "part":
		return w.pick(worldParts)
	case "brands":
		return w.pick(worldBrands)
	case "old", "new":
		one := map[string]string{"old": "row", "new": "part"}[name]
		list := w.value(one)
		if w.IntN(6) == 0 && len(w.shown[one]) < 8 { // else there are millions of certificates to try
			list += "," + w.value(one)
		}
		return "[" + list + "]"
	case "code":
		return w.pick(worldCodes)
	case "twig", "head":
		return w.pick(worldTwigs)
	case "ticket":
		return w.pick(worldTickets)
	case "desk":
		return w.pick(worldDesks)
	case "at":
		return w.pick(append(worldTimes, `"x1"`))
	case "sum":
		return w.pick([]string{`7`, `8.50`, `"7"`})
	case "sums":
		sums := w.pick(worldSums)
		if w.IntN(2) == 0 {
			sums += "," + w.pick(worldSums)
		}
		return "[" + sums + "]"
	case "owner", "repo":
		return w.pick([]string{`"octo"`, `"hello"`, `"acme"`})
	case "pr", "issue":
		return w.pick([]string{`13`, `13`, `50`, `130123`})
	case "state":
		return `"shut"`
	case "text", "note":
		return w.pick(worldTexts)
	case "line": // without an atom, which would rest on too many things beside a row's
		return w.pick([]string{`"hello"`, `"hello there"`, `"**so**"`})
	case "word":
		return w.pick([]string{`"alpha"`, `"beta77"`, `"bobby"`})
	}
	return w.pick(worldValues)
}

func TestReferenceModel(t *testing.T) {
	sessions := 100_000
	switch {
	case os.Getenv("WRIT_LONG") == "1":
		sessions = 1_000_000
	case testing.Short():
		sessions = 10_000
	}
	p, faults := policy.Parse("policy.yaml", []byte(worldPolicy))
	more, faultsToo := policy.Parse("policy.yaml", []byte(worldPolicy+worldLine))
	if p == nil || more == nil {
		t.Fatal(faults, faultsToo)
	}
	var defs []gate.Definition
	for tool, args := range worldArguments {
		server, name, _ := strings.Cut(tool, "/")
		properties := map[string]any{}
		for _, a := range args {
			properties[a] = map[string]any{}
		}
		required := []string{}
		if name == "put" {
			properties["kind"] = map[string]any{"enum": []string{"red", "green"}, "default": "red"}
			properties["mail"] = map[string]any{"default": ""}
			required = append(required, "kind")
		}
		if name == "answer" || name == "hand" {
			required = append(required, "desk")
		}
		def := map[string]any{"name": name, "inputSchema": map[string]any{"type": "object", "properties": properties, "required": required}}
		if name != "doc" && name != "names" && name != "page" { // they answer in a text
			def["outputSchema"] = map[string]any{"type": "object"}
		}
		raw, _ := json.Marshal(def)
		defs = append(defs, gate.Definition{Server: server, Raw: raw})
	}
	c, _ := gate.NewCatalogue(defs, p)
	cMore, _ := gate.NewCatalogue(defs, more)
	var mu sync.Mutex
	allowed, refused, rules := 0, 0, map[string]int{}
	t.Run("sessions", func(t *testing.T) { // which ends with the last of them
		for first := range runtime.GOMAXPROCS(0) {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				acts, no, by := 0, 0, map[string]int{}
				for seed := first; seed < sessions; seed += runtime.GOMAXPROCS(0) {
					key := [32]byte{7, byte(seed)}
					w := &world{Rand: rand.New(rand.NewPCG(uint64(seed), 1)), t: t, policy: p, catalogue: c, other: ruleset{more, cMore}, at: time.Unix(1_800_000_000, 0).UTC(),
						shown: map[string][]string{}, gate: gate.NewSession("s_model", key, provenance.Caps{}), told: New("s_model", key)}
					for i := range 4 + w.IntN(9) {
						w.step(by, i == 0)
						if t.Failed() {
							t.Fatalf("session %d:\n%s", seed, strings.Join(w.script, "\n"))
						}
					}
					acts += w.allowed
					no += w.refused
				}
				mu.Lock()
				defer mu.Unlock()
				allowed += acts
				refused += no
				for rule, n := range by {
					rules[rule] += n
				}
			})
		}
	})
	t.Logf("%d sessions: %d acts allowed, %d refused; rules %v", sessions, allowed, refused, rules)
	for _, rule := range []string{"const", "catalog", "user", "user:amount", "user:time", "user:day", "user:composite", "user:within", "b/pair", "g/close", "g/answer", "p/type", "p/push", "q/click", "q/key", "n/append", "n/post", "b/shift", "b/till", "after a yes", "left out", "output", "grown:output", "grown:call", "party", "seen", "said_by", "of_named", "open", "approval", "invented", "derived:path_join", "derived:typed_in", "derived:fresh", "derived:element", "n/graft", "f/new", "f/get", "h/take", "d/run", "in small letters", "derived:due"} {
		if rules[rule] < sessions/1000 {
			t.Errorf("only %d values by rule %s", rules[rule], rule)
		}
	}
	if rules["untried"] > sessions/500 {
		t.Errorf("of %d calls not all certificates were tried", rules["untried"])
	}
	if allowed < sessions/4 || refused < sessions/4 {
		t.Errorf("%d allowed and %d refused: nothing is compared", allowed, refused)
	}
}

// step is one event of a session: a turn, or a call and its result.
func (w *world) step(rules map[string]int, first bool) {
	if w.IntN(5) == 0 {
		if w.IntN(5) == 0 {
			w.say("Yes, go ahead.")
			return
		}
		text := w.pick(worldWords)
		for range w.IntN(2) {
			text += " " + w.pick(worldWords)
		}
		if w.IntN(6) == 0 {
			text += " octo/hello"
			w.shown["owner"], w.shown["repo"] = append(w.shown["owner"], `"octo"`), append(w.shown["repo"], `"hello"`)
		}
		for _, of := range []string{"user", "mail", "sender"} {
			if known := w.shown[of]; len(known) > 0 && w.IntN(2) == 0 {
				text += " " + strings.Trim(w.pick(known), `"`)
			}
		}
		w.say(text)
		return
	}
	if !first && w.IntN(12) == 0 { // what a person says yes to, and then from now on
		for range 3 + w.IntN(4) {
			switch n := w.IntN(4); {
			case n == 0:
				w.policy, w.catalogue, w.other = w.other.policy, w.other.catalogue, ruleset{w.policy, w.catalogue}
				w.script = append(w.script, fmt.Sprintf("%d lines", len(w.policy.Grown)))
			case n == 1:
				w.call(rules, "c/list", nil)
			case w.calls < 4: // what is guessed closes
				w.calls++
				w.asked(rules, "c/call", []string{fmt.Sprintf("%q:%s", "whom", w.value("whom"))})
			}
		}
		return
	}
	if !first && !w.named && w.IntN(20) == 0 {
		w.named = true
		w.tell(rules)
	}
	if !first && w.IntN(40) == 0 {
		w.visit(rules)
	}
	if !first && w.IntN(30) == 0 {
		w.grow(rules)
	}
	if !first && w.IntN(30) == 0 {
		w.files(rules)
	}
	if !first && w.IntN(30) == 0 {
		w.desks(rules)
	}
	if !first && w.IntN(20) == 0 {
		w.pages(rules)
		w.sites(rules)
	}
	if !first && w.IntN(40) == 0 {
		w.heads(rules)
	}
	if !first && w.IntN(200) == 0 {
		w.tables(rules)
	}
	if !first && w.IntN(50) == 0 {
		w.presses(rules)
	}
	names := []string{"a/list", "a/list", "a/all", "a/rows", "a/table", "a/dirs", "a/codes", "a/mails", "a/brands"}
	if !first {
		names = []string{"a/list", "a/all", "a/rows", "a/table", "a/dirs", "a/put", "a/put", "a/put", "a/make", "a/make", "a/take", "a/drop", "a/drop", "a/open", "a/open", "b/reply", "b/reply", "w/fetch",
			"a/codes", "a/mails", "a/brands", "a/whose", "a/whose", "b/soon", "b/move", "b/move", "b/pair", "a/put", "b/use", "b/settle", "b/settle", "b/settle", "b/settle", "b/pay", "a/mails", "b/when", "a/put", "a/open", "b/copy", "b/copy", "b/copy", "b/copy", "b/copy", "b/fork", "b/fork", "b/land", "b/land", "b/enrol", "b/enrol", "b/jot", "b/jot", "b/jot", "a/open", "a/open", "n/note", "n/note", "n/note", "n/note", "n/note", "n/append", "n/append", "n/append", "a/open", "a/put", "a/put", "a/put", "b/tell", "b/name"}
	}
	tool := w.pick(names)
	if tool == "a/rows" && w.IntN(4) == 0 {
		tool = "a/doc"
	}
	_, name, _ := strings.Cut(tool, "/")
	if name == "open" && w.IntN(4) == 0 {
		w.call(rules, "a/dirs", nil)
		w.say(w.pick([]string{"open z.txt", "open b/z.txt", "open z.txt in /srv/a", "> z.txt"}))
	}
	if name == "land" && w.IntN(4) > 0 {
		w.say(w.pick(worldLandings))
	}
	if name == "settle" && w.IntN(4) == 0 {
		w.call(rules, "a/mails", nil)
		w.say(w.pick([]string{"ask ann@a.example", "what does ben@a.example want?"}))
	}
	if name == "when" || name == "soon" {
		for range w.IntN(3) {
			w.say(w.pick(worldDays))
			w.at = w.at.Add(time.Duration(w.IntN(3)) * time.Minute)
		}
	}
	if name == "copy" && len(w.shown["part"]) > 0 && w.IntN(4) > 0 {
		w.say(w.pick([]string{"same parts as 'Blue lamp'", "same parts as 'Blue lamp'", "same parts as 'Blue lamp' on 2027-01-15", "same parts as 'bobby'"}))
	}
	if name == "rows" && w.IntN(16) == 0 {
		w.say(w.pick([]string{"row starting with row-0", "row that ends in '-0001'", "row whose name begins with row-0001", "the one starting with row-0", "row starting with 'row-0001' and row-0002", "row starting with Row-0",
			"user starting with bobb", "user about bobby", "user that starts with 'say bobby'"}))
	}
	var args []string
	for _, a := range worldArguments[tool] {
		if w.IntN(5) < 2 || name == "land" && (a == "owner" || a == "repo") || name == "pair" || name == "append" || name == "jot" || name == "enrol" && a == "user" || a == "called" || len(worldArguments[tool]) == 1 && tool != "a/list" {
			v := w.value(a)
			if name == "enrol" && a == "user" && w.IntN(3) > 0 {
				v = w.pick(worldNew)
				w.shown["user"] = append(w.shown["user"], v)
			}
			if name == "land" && w.IntN(3) > 0 && (a == "owner" || a == "repo") {
				v = map[string]string{"owner": `"octo"`, "repo": `"hello"`}[a]
			}
			args = append(args, fmt.Sprintf("%q:%s", a, v))
		}
	}
	if read := slices.Contains([]string{"list", "all", "rows", "doc", "table", "dirs", "codes", "mails", "brands"}, name); read && w.IntN(2) == 0 {
		args = nil // most listings are asked for nothing
	}
	w.at = w.at.Add(time.Duration(w.IntN(4)) * time.Minute)
	w.asked(rules, tool, args)
}

// tell writes to somebody of whom the user spoke, before or behind acts that may have called
// another one so.
func (w *world) tell(rules map[string]int) {
	name := w.pick([]string{`"Anna"`, `"Anna"`, `"@Anna"`})
	for range 1 + w.IntN(4) {
		switch w.IntN(7) {
		case 0, 1:
			w.say("tell Anna")
		case 6:
			w.say(w.pick([]string{"keep anna", "keep anna", "'anna'", "keep ANNA", "> anna"}))
			w.call(rules, "a/put", []string{`"user":` + w.pick([]string{`"Anna"`, `"Anna"`, `"anna"`, `"ANNA"`})})
		case 2:
			w.asked(rules, "b/enrol", []string{`"user":` + w.pick([]string{`"Anna"`, `"Anna"`, `"@anna"`}), `"at":"x1"`}[:1+w.IntN(2)])
		case 3:
			w.call(rules, "n/title", []string{`"text":` + w.pick([]string{`"anna"`, `"Anna "`, `"to Anna"`})})
		case 4:
			w.call(rules, "a/list", nil)
		case 5:
			w.call(rules, "a/take", []string{`"mail":` + w.value("mail")})
		}
	}
	for range 2 {
		w.asked(rules, w.pick([]string{"n/note", "n/note", "n/note", "n/only", "n/grant"}), []string{`"user":` + name})
		w.say("tell Anna")
	}
}

// visit posts in a room that the user spoke of, and changes it, and puts something into a
// calendar that begins when he said.
func (w *world) visit(rules map[string]int) {
	for range 1 + w.IntN(3) {
		switch w.IntN(4) {
		case 0:
			w.say(w.pick([]string{"post it in #Anna", "in #Boris, and tell #Anna", "(#anna)", "post it in Anna", "in 'Boris'", "x#Anna", "#Anna's", "shift Anna", "shift Boris Anna"}))
		case 1, 2:
			w.call(rules, "a/rooms", w.fields(`"q":`+w.pick([]string{`"Anna"`, `"Ann"`, `"Boris"`})))
		case 3:
			w.say(w.pick(worldDays) + w.pick([]string{"", " ", ", and "}) + w.pick(worldDays))
			w.call(rules, "b/till", []string{`"at":` + w.pick(worldTimes)})
		}
	}
	room := []string{`"room":` + w.value("room")}
	w.call(rules, "n/post", append(room, `"text":"hello"`))
	w.call(rules, "b/shift", append(room, w.fields(`"text":"hello"`)...))
}

// grow makes what the user ordered and gave no name, and goes to it.
func (w *world) grow(rules map[string]int) {
	w.call(rules, "a/list", nil)
	twigs := []string{w.pick(worldTwigs), w.pick(worldTwigs)}
	user := func() []string {
		if w.IntN(8) == 0 {
			return nil
		}
		return []string{`"user":` + w.pick([]string{`"bobby"`, `"bobby"`, `"carol-long"`})}
	}
	for range 3 + w.IntN(4) {
		twig := `"twig":` + w.pick(twigs)
		switch w.IntN(7) {
		case 0, 1:
			w.say(w.pick([]string{"make a twig for 'bobby' and 'carol-long'", "ask 'bobby'. Grow a twig", "don't make a twig for 'carol-long'", "> make a twig", "Yes, go ahead.", "make a twig fix-it for 'bobby'"}))
		case 2, 3:
			at := append(user(), twig)
			w.call(rules, "n/sprout", append(slices.Clone(at), w.fields(`"at":`+w.pick(twigs))...))
			if w.IntN(2) == 0 {
				w.call(rules, "n/graft", append(at, `"text":"hello"`))
			}
		case 4:
			w.call(rules, "n/prune", append(user(), twig))
		default:
			w.call(rules, "n/graft", append(user(), twig, `"text":"hello"`))
		}
	}
}

// files gives new names in directories, which the agent lists, or Writ does.
func (w *world) files(rules map[string]int) {
	dirs, names := []string{"/srv/a", "/srv/a/b"}, []string{"x.md", "y.md", "b", "X.md"}
	for range 3 + w.IntN(5) {
		dir := w.pick(dirs)
		file := []string{fmt.Sprintf("%q:%q", "file", dir+"/"+w.pick(names))}
		switch w.IntN(7) {
		case 0:
			w.call(rules, "f/names", []string{fmt.Sprintf("%q:%q", "in", dir+w.pick([]string{"", "", "/", "/../a"}))})
		case 1:
			w.look = true
			w.call(rules, "f/names", []string{fmt.Sprintf("%q:%q", "in", dir)})
			w.look = false
		case 2:
			w.say(w.pick([]string{"look into /srv/a", "write /srv/a/x.md", "edit x.md"}))
		case 3:
			w.call(rules, "f/edit", file)
		case 4:
			w.call(rules, "f/get", []string{fmt.Sprintf("%q:%q", "file", w.pick([]string{dir, dir + "/" + w.pick(names), dir + "/../a/x.md"}))})
		default:
			w.call(rules, "f/new", file)
		}
	}
}

// desks closes tickets at the desks where they were shown, and at others.
func (w *world) desks(rules map[string]int) {
	desk := func(more ...string) []string {
		return w.fields(`"desk":` + w.pick(append(more, worldDesks...)))
	}
	for range 3 + w.IntN(4) {
		switch w.IntN(5) {
		case 0, 1:
			w.call(rules, "g/tickets", append(desk(`["d-one"]`), w.fields(`"q":"d-one"`)...))
		case 2:
			w.say("ticket " + strings.Trim(w.pick(worldTickets), `"`))
		case 3:
			tool, arg := "g/answer", `"slip":`
			if w.IntN(4) == 0 {
				tool, arg = "g/hand", `"ticket":`
			}
			at := desk()
			for _, ticket := range worldTickets {
				w.call(rules, tool, append(slices.Clone(at), arg+ticket, `"text":"hello"`))
			}
		default:
			w.call(rules, "g/close", append(desk(), `"ticket":`+w.pick(worldTickets)))
		}
	}
}

// pages types what the user ordered into pages that were opened, and pushes what he orders to be
// pushed, or named.
func (w *world) pages(rules map[string]int) {
	hosts := []string{"one.example", "one.example", "one.example", "two.example"}
	for range 3 + w.IntN(5) {
		host := w.pick(hosts)
		switch w.IntN(6) {
		case 0:
			w.say(w.pick([]string{"open https://" + host + "/ and type 'bobby'", "open https://" + host + "/", "type 'bobby'", "don't type 'bobby'", "at " + host + " type 'bobby'", "type 'bobby' in bob@two.example's box"}))
		case 1:
			w.call(rules, "p/open", []string{`"url":"https://` + host + `/"`})
		case 2:
			if w.IntN(4) == 0 {
				w.call(rules, "p/back", w.fields(`"page":1`))
			}
		case 3, 4:
			page := []string{`"page":1`, `"page":2`, `"page":1`, `"page":2`, `"page":""`}[w.IntN(5)]
			w.call(rules, "p/type", []string{page, `"text":"bobby"`})
		default:
			w.say(w.pick([]string{"what is on x1 and 13-b?", "push x1, and look at 13-b", "x1 is late, push it", "don't push x1", "push it to 13-b", "Kim will push x1", "push it tomorrow"}))
			for range 2 {
				named := []string{`"x1"`, `"x1"`, `"13-b"`, `"alpha"`, `""`}
				w.asked(rules, w.pick([]string{"p/push", "p/push", "p/shut"}), append([]string{`"branch":` + w.pick(named)}, append(w.fields(`"more":`+w.pick(named)), w.fields(`"at":`+w.pick(named))...)...))
			}
		}
	}
}

// sites clicks, by what a person allowed on one site, where the browser may be on another.
func (w *world) sites(rules map[string]int) {
	w.say("open https://shop.example/ and https://bank.example/, with /srv/bobby")
	for range 4 + w.IntN(8) {
		switch w.IntN(6) {
		case 0:
			w.call(rules, "q/open", []string{`"url":"https://` + w.pick([]string{"shop.example", "bank.example"}) + `/"`})
		case 1, 2:
			w.call(rules, "q/look", nil)
		case 3:
			w.call(rules, "q/key", append([]string{`"key":` + w.pick([]string{`"Tab"`, `"Enter"`, `"Delete"`})}, w.fields(`"text":"x1"`)...))
		default:
			w.call(rules, "q/click", append([]string{`"ref":` + w.pick([]string{`"e1"`, `"e1"`, `"e2"`, `"delete it"`})}, w.fields(`"file":"/srv/bobby"`)...))
		}
	}
}

const typesAndBooks = "type bobby on shop.example and book it"

// listing is a page as a browser lists it.
func (w *world) listing() string {
	lines := []string{"### Page", "- Page URL: " + strings.Trim(w.pick(worldPages), `"`), "### Snapshot", "```yaml"}
	for i := range 1 + w.IntN(3) {
		role, in := w.pick([]string{"button", "button", "link"}), ""
		if w.IntN(8) == 0 {
			lines, in = append(lines, "- iframe [ref=e9]:"), "  "
		}
		line := fmt.Sprintf("%s- %s %s [ref=e%d]", in, role, w.pick([]string{`"Book"`, `"Book"`, `"Send"`, `"Blue lamp"`, `"Blue lamp"`, `"Book 2"`, `"Delete it"`, `"B\u200book"`}), i+1)
		if role == "link" {
			lines = append(lines, line+":", in+"  - /url: "+w.pick([]string{"/a", "/a", "https://bank.example/", `"#"`}))
		} else {
			lines = append(lines, line+w.pick([]string{"", "", "", ": more"}))
		}
	}
	return strings.Join(append(lines, "```"), "\n")
}

// presses clicks on what a page has, by what the user calls it or not.
func (w *world) presses(rules map[string]int) {
	w.say(w.pick([]string{"open https://shop.example/ and https://bank.example/", "open https://shop.example/"}))
	w.call(rules, "q/open", []string{`"url":"https://shop.example/"`})
	for range 6 + w.IntN(8) {
		switch w.IntN(7) {
		case 0:
			w.say(w.pick([]string{"book it on shop.example", "book it", typesAndBooks, typesAndBooks, typesAndBooks, "send it on https://shop.example/", "click 'Blue lamp' on shop.example", "look at the blue lamp on shop.example", "don't book", "Yes, go ahead.", "click delete it on shop.example", "click e1 on shop.example"}))
			w.call(rules, "q/page", nil)
			switch w.IntN(4) { // what else is called between
			case 0:
				w.call(rules, "q/look", nil)
			case 1, 2:
				w.call(rules, "q/type", []string{w.pick([]string{`"text":"bobby"`, `"text":"bobby","on":false`, `"text":"bobby","on":true`})})
			}
			w.asked(rules, "q/press", []string{`"ref":"e1"`})
		case 1, 2, 3:
			w.call(rules, "q/page", w.some(8, `"of":"e1"`))
		default:
			w.asked(rules, "q/press", []string{`"ref":` + w.pick([]string{`"e1"`, `"e1"`, `"e2"`, `"e3"`})})
		}
	}
}

// heads takes what a server said it is at, while it is and when it may be elsewhere.
func (w *world) heads(rules map[string]int) {
	w.say(w.pick([]string{"x1 is late, push it", "x1 is late, push it", "don't push x1"}))
	for range 4 + w.IntN(6) {
		switch w.IntN(4) {
		case 0:
			w.call(rules, "h/leave", w.fields(`"head":"x1"`))
		case 1, 2:
			w.call(rules, "h/at", nil)
		default:
			w.call(rules, "h/take", []string{`"head":` + w.pick([]string{`"fix-it"`, `"main"`})})
		}
	}
}

// tables adds rows to what the user names, to what a person allowed, and by statements that he typed.
func (w *world) tables(rules map[string]int) {
	row := func() string {
		return fmt.Sprintf("INSERT INTO %s (a, %s) VALUES (%s, %s)", w.pick([]string{"users", "users", "kept", "other"}), w.pick([]string{"b", "b", "c"}), w.pick([]string{"13", "'bobby'", "'hello'", "NULL"}), w.pick([]string{"'ann@a.example'", "'x1'", "7", "'see https://one.example/a'"}))
	}
	for range 3 + w.IntN(4) {
		switch w.IntN(4) {
		case 0:
			w.say(w.pick([]string{"add bobby to users", "add ann@a.example, 13, to users", "don't add bobby to users", "who added x1 to users?", "run `" + row() + "`", "what does `" + row() + "` do?"}))
		default:
			w.call(rules, "d/run", []string{fmt.Sprintf(`"query":%q`, w.pick([]string{row(), row(), row(), "DELETE FROM users", "INSERT INTO users VALUES (1)"}))})
		}
	}
}

// some is one field now and then.
func (w *world) some(n int, one string) []string {
	if w.IntN(n) == 0 {
		return []string{one}
	}
	return nil
}

// fields are one that is given, or none.
func (w *world) fields(one string) []string {
	if w.IntN(3) == 0 {
		return []string{one}
	}
	return nil
}

// asked makes a call, and where it is asked about a person may answer, and the agent calls
// again; not of a server that is read afterwards, whose places what he let pass would lower
// (R38), but where the line that would have let it pass is kept later.
func (w *world) asked(rules map[string]int, tool string, args []string) {
	ask := w.call(rules, tool, args)
	if ask == nil || strings.HasPrefix(tool, "a/") || tool == "c/call" && !w.spared(args) || w.IntN(3) > 0 {
		return
	}
	said := gate.Approval{Act: ask.Act, Covers: ask.Covers(), Yes: w.IntN(4) > 0, By: "ann", Label: writ.User, At: w.at}
	n := w.gate.Next()
	w.script = append(w.script, fmt.Sprintf("a person says %v", said.Yes))
	w.gate.Commit(w.gate.Approve(n, said))
	w.told.Approve(Approval{Evidence: n, Act: said.Act, Covers: said.Covers, Yes: said.Yes, Label: said.Label, At: said.At})
	w.at = w.at.Add(time.Duration(w.IntN(12)) * time.Minute)
	w.call(rules, tool, args)
	w.yes = w.yes || tool == "c/call" && said.Yes
}

// spared reports whether the line that is not in force would let a call pass.
func (w *world) spared(args []string) bool {
	d := gate.Decide(gate.Input{Policy: w.other.policy, Catalogue: w.other.catalogue, Session: w.gate, Time: w.at,
		Call: gate.Call{Server: "c", Tool: "call", Arguments: strictjson.Of([]byte("{" + strings.Join(args, ",") + "}"))}})
	return d.Allowed()
}

func (w *world) say(text string) {
	n := w.gate.Next()
	w.script = append(w.script, fmt.Sprintf("turn %q", text))
	w.gate.Commit(w.gate.Turn(n, []byte(text), w.at))
	w.told.Turn(n, text, w.at)
}

// call makes one call, and returns what a person would have to allow for it to pass.
func (w *world) call(rules map[string]int, tool string, args []string) *gate.Ask {
	server, name, _ := strings.Cut(tool, "/")
	in := gate.Input{Policy: w.policy, Catalogue: w.catalogue, Session: w.gate, Time: w.at, Look: w.look,
		Call: gate.Call{Server: server, Tool: name, Arguments: strictjson.Of([]byte("{" + strings.Join(args, ",") + "}"))}}
	w.script = append(w.script, fmt.Sprint("call, Writ's own ", w.look, " ")+tool+" "+string(in.Call.Arguments.Raw()))
	d := gate.Decide(in)
	rec, err := gate.ParseRecord(d.Record())
	if err != nil {
		w.t.Fatal(err)
	}
	w.n++
	call := Call{Number: w.n, Policy: w.policy, Catalogue: w.catalogue, Record: rec, Arguments: in.Call.Arguments, Time: w.at}
	schema := rec.Code == writ.InvalidPayload
	if d.Effect.Gated() && !schema {
		sent := call.Arguments
		if name == "put" && !sent.Get("kind").Exists() { // its schema's default
			sent = strictjson.Of(sent.With(strictjson.Member{Name: "kind", Value: []byte(`"red"`)}))
		}
		if mail, is := sent.Get("mail").Text(); name == "put" && is && mail == "" { // its schema's default, which may go
			i := slices.IndexFunc(rec.Traces, func(t gate.Trace) bool { return t.Pointer == "/mail" })
			if i < 0 {
				sent = strictjson.Of(strictjson.Delete(sent.Raw(), "mail"))
				rules["left out"]++
			} else if rec.Traces[i].Rule == "" && rec.Reason != writ.PolicyPointerClosed && rec.Reason != writ.PolicySessionClosed {
				w.t.Errorf("a default that nothing vouches for was judged\n%s", d.Record())
			}
		}
		found, tried := w.told.somehow(call, sent)
		if !tried {
			rules["untried"]++
			found = d.Allowed() && w.told.Verify(call) == nil
		}
		if d.Allowed() != found {
			w.t.Errorf("the gate allows %v, a certificate is there %v\n%s", d.Allowed(), found, d.Record())
		}
		if d.Allowed() {
			w.allowed++
			for _, t := range rec.Traces {
				if tool == "d/run" && len(rec.Traces) > 1 {
					rules[tool]++
				}
				if strings.HasPrefix(tool, "q/") && t.Rule == "grown:call" {
					rules[tool]++
				}
				if rules[t.Rule]++; (tool == "b/pair" || tool == "g/close" || tool == "g/answer" || tool == "n/append" || tool == "n/post" || tool == "b/shift" || tool == "h/take") && t.Rule == "output" {
					rules[tool]++
				} else if (tool == "p/push" || tool == "p/type") && t.Rule == "user" {
					rules[tool]++
				} else if tool == "n/graft" && t.Rule == "invented" {
					rules[tool]++
				} else if tool == "f/new" && t.Rule == "derived:fresh" {
					rules[tool]++
				} else if tool == "f/edit" && t.Rule == "output" && t.Evidence[0].Pointer == "/arguments/file" {
					rules["f/get"]++
				} else if tool == "a/put" && t.Rule == "user" {
					if _, words, _ := w.told.quote(t.Evidence[0]); words == "anna" && strings.Contains(string(call.Arguments.Raw()), `"Anna"`) {
						rules["in small letters"]++
					}
				} else if tool == "b/till" && t.Rule == "user:day" {
					rules[tool]++
				} else if w.yes && t.Rule == "grown:output" && tool == "c/call" {
					rules["after a yes"]++
				}
			}
		} else {
			w.refused++
		}
	}
	w.gate.Decided(&d)
	if !d.Allowed() {
		return d.Ask()
	}
	if err := w.told.Call(call); err != nil {
		w.t.Errorf("%v\n%s", err, d.Record())
	}
	body := []string{}
	for _, f := range worldFields[tool] {
		var es []string
		for range w.IntN(4) {
			v := w.fresh(f)
			w.shown[worldFor[f]] = append(w.shown[worldFor[f]], v)
			switch f {
			case "lone":
				part := w.pick(worldParts)
				w.shown["part"] = append(w.shown["part"], part)
				es = append(es, v+":"+part)
			case "rows", "table":
				part := w.pick(worldParts)
				title := w.pick([]string{`"Blue lamp"`, `"Blue lamp"`, `"blue lamp"`, `"Blue_lamp"`, `"bobby"`, `"brand-b"`})
				w.shown["part"], w.shown["who"] = append(w.shown["part"], part), append(w.shown["who"], title)
				row := fmt.Sprintf(`"title":%s,"name":%s,"city":%s,"code":%s,"parts":[%s],%s"brand":%s}`, title, w.pick(worldNames), w.pick(worldNames), w.pick(worldCodings), part, w.pick([]string{`"shared":[],`, `"shared":[],`, `"shared":["bobby"],`, ""}), w.pick(worldBrands))
				if f == "table" {
					es = append(es, v+":{"+row)
				} else {
					es = append(es, `{"id":`+v+","+row)
				}
			case "rooms":
				es = append(es, fmt.Sprintf(`{"id":%s,"name":%s,"title":%s}`, v, w.pick(worldNames), w.pick(worldNames)))
			case "tickets":
				es = append(es, fmt.Sprintf(`{"id":%s,"slip":%s%s}`, v, w.pick(worldTickets), w.pick([]string{"", "", `,"desk":` + w.pick(worldDesks), `,"said":{"desk":"d-one"}`, `,"desk":["d-one","d-two"]`})))
			case "brands":
				parts := []string{w.pick(worldParts), w.pick(worldParts), w.pick(worldParts)}
				w.shown["part"] = append(w.shown["part"], parts...)
				es = append(es, fmt.Sprintf(`{"id":%s,"said":%s,"parts":[%s,%s],"more":[{"id":%s,"part":%s}]}`, v, w.pick(worldBrands), parts[0], parts[1], w.pick(worldBrands), parts[2]))
			case "letters":
				from, sum := w.pick(worldSenders), w.pick([]string{`7`, `7.0`, `8.5`, `"soon"`})
				w.shown["sender"], w.shown["sum"] = append(w.shown["sender"], from), append(w.shown["sum"], sum)
				es = append(es, fmt.Sprintf(`{"from":%s,"sum":%s}`, from, sum))
			default:
				es = append(es, v)
			}
		}
		if f == "row" {
			if len(es) > 0 {
				body = append(body, `"row":`+es[0])
			}
			continue
		}
		if f == "letters" {
			f = "mails"
		}
		if f == "table" || f == "lone" {
			key := func(e string) string { return e[:strings.IndexByte(e, ':')] }
			slices.SortFunc(es, func(a, b string) int { return strings.Compare(key(a), key(b)) })
			es = slices.CompactFunc(es, func(a, b string) bool { return key(a) == key(b) })
			body = append(body, fmt.Sprintf("%q:{%s}", f, strings.Join(es, ",")))
		} else {
			body = append(body, fmt.Sprintf("%q:[%s]", f, strings.Join(es, ",")))
		}
	}
	result := strictjson.Of([]byte(`{"structuredContent":{` + strings.Join(body, ",") + `}}`))
	if tool == "a/doc" {
		text := "{" + strings.Join(body, ",") + "}"
		if w.IntN(6) == 0 {
			text = "found " + text
		}
		result = strictjson.Make(strictjson.Member{Name: "content", Value: slices.Concat([]byte(`[{"type":"text","text":`), strictjson.Quote(text), []byte("}]"))})
	}
	if tool == "f/names" {
		text := strings.NewReplacer(`"files":[`, "", `"`, "", ",", "\n", "]", "").Replace(body[0])
		result = strictjson.Make(strictjson.Member{Name: "content", Value: slices.Concat([]byte(`[{"type":"text","text":`), strictjson.Quote(text), []byte("}]"))})
	}
	if tool == "q/page" {
		result = strictjson.Make(strictjson.Member{Name: "content", Value: slices.Concat([]byte(`[{"type":"text","text":`), strictjson.Quote(w.listing()), []byte("}]"))})
	}
	if !d.Effect.Gated() && w.IntN(16) == 0 { // an act is made, and the user speaks, while the read is under way
		w.call(rules, "n/append", []string{fmt.Sprintf("%q:%s", "row", w.value("row")), `"line":"hello"`})
		if w.IntN(2) == 0 {
			w.say(w.pick(worldWords))
		}
	}
	w.script = append(w.script, "result "+string(result.Raw()))
	n := w.gate.Next()
	o := w.gate.Observe(&d, gate.Result{Evidence: n, Time: w.at, Status: gate.OK, Value: result})
	w.gate.Commit(o)
	if !o.Admissible {
		w.told.End(call.Number)
	} else if err := w.told.Result(Result{Call: call.Number, Evidence: n, Time: w.at, Value: result}); err != nil {
		w.t.Error(err)
	}
	return nil
}

// mostTried bounds the certificates of one call: a few calls of many values have millions.
const mostTried = 20_000

// somehow reports whether some certificate of a call verifies that was sent so, and whether
// all were tried if none did.
func (s *Session) somehow(in Call, sent strictjson.Value) (found, tried bool) {
	rec := *in.Record
	rec.Status, rec.Allowed, rec.Code, rec.Reason, rec.Failures, rec.Forwarded = writ.Accepted, true, "", "", nil, ""
	if string(sent.Raw()) != string(in.Arguments.Raw()) {
		rec.Status, rec.Forwarded = writ.Transformed, s.digest(sent.Raw())
	}
	rec.Traces = slices.Clone(rec.Traces)
	in.Record = &rec
	c, err := s.read(in)
	if err != nil {
		return false, true
	}
	s.keptOn(c)
	// Of each value a trace that holds by itself; mostly these hold together.
	holds := func(i int, l *leaf, t gate.Trace) bool {
		rec.Traces[i] = t
		l.open = false
		return s.trace(c, l) == ""
	}
	// What reading the call finds rests on no trace but for the marks.
	verifies := func() bool {
		for _, l := range c.leaves {
			l.open, l.contested = false, l.Contested
		}
		return s.verify(c) == nil
	}
	quotes := s.quotes()
	for i, l := range c.leaves {
		any := false
		for t := range s.traces(l, quotes) {
			if any = holds(i, l, t); any {
				break
			}
		}
		if !any {
			return false, true
		}
	}
	if verifies() {
		return true, true
	}
	// Else all of them, in all their combinations.
	options, all := make([][]gate.Trace, len(c.leaves)), 1
	for i, l := range c.leaves {
		for t := range s.traces(l, quotes) {
			if holds(i, l, t) {
				options[i] = append(options[i], t)
			}
		}
		if all *= max(1, len(options[i])); all > mostTried {
			return false, false
		}
	}
	var try func(i int) bool
	try = func(i int) bool {
		if i == len(c.leaves) {
			return verifies()
		}
		return slices.ContainsFunc(options[i], func(t gate.Trace) bool {
			rec.Traces[i] = t
			return try(i + 1)
		})
	}
	return try(0), true
}

// traces are all that a value could rest on.
func (s *Session) traces(l *leaf, quotes []gate.Ref) iter.Seq[gate.Trace] {
	return func(yield func(gate.Trace) bool) { s.eachTrace(l, quotes, yield) }
}

// quotes are all stretches of what the user typed.
func (s *Session) quotes() (quotes []gate.Ref) {
	for i := range s.turns {
		t := &s.turns[i]
		for start := range t.own {
			if !t.begins(start) && !t.given(start) && t.own[max(0, start-1)] != '#' {
				continue
			}
			for end := start + 1; end <= len(t.own); end++ {
				if t.ends(end) {
					quotes = append(quotes, gate.Ref{Evidence: t.evidence, Tool: userTool, Start: start, End: end, Label: writ.User})
				}
			}
		}
	}
	return quotes
}

func (s *Session) eachTrace(l *leaf, quotes []gate.Ref, yield func(gate.Trace) bool) {
	enough := false
	add := func(rule string, label writ.Label, refs ...gate.Ref) {
		if enough {
			return
		}
		t := *l.Trace
		t.Rule, t.Label, t.Evidence, t.Contested = rule, label, slices.Clone(refs), false
		enough = !yield(t)
	}
	add("const", writ.Operator)
	add("local", writ.Model)
	add("catalog", writ.System)
	add("derived:due", writ.Model)
	for _, a := range s.approvals {
		label := a.Label
		if l.role == policy.Content {
			label = writ.Model
		}
		add("approval", label, gate.Ref{Evidence: a.Evidence, Tool: approvalTool, Label: a.Label})
	}
	var same, other, senders, titles []gate.Ref
	from := func(kind policy.SourceKind) bool {
		return l.rule != nil && slices.ContainsFunc(l.rule.From, func(src policy.Source) bool { return src.Kind == kind })
	}
	quoted := func(e gate.Ref) string { _, words, _ := s.quote(e); return words }
	// The gate asks for a third party's identity (R3) only where no better origin of the
	// value stands anywhere, of whatever source, or where an act may have put it there from an
	// open collection; a verifier has no such order.
	party, opened := true, false
	for _, of := range s.places {
		for _, p := range of {
			if p.rule != nil && p.rule.Matches != "" && from(policy.FromNamed) {
				titles = append(titles, p.ref())
			}
			if p.typ == provenance.Email && from(policy.FromSaidBy) {
				senders = append(senders, p.ref())
			}
			if equal(l.value, l.typ(), p) {
				party = party && (p.rule == nil || p.label < writ.System)
				opened = opened || p.opened && p.label >= writ.System && p.collection() == l.collection()
				same = append(same, p.ref())
			}
			if p.rule == nil || p.typ != provenance.Untyped {
				other = append(other, p.ref())
			}
		}
	}
	for i := range s.turns {
		if l.role != policy.TimeRole {
			break
		}
		for _, days := range [][]turn{s.turns[i : i+1], s.continued(&s.turns[i])} {
			text, _ := l.value.Text()
			words, begins := "", []int{}
			for _, t := range days {
				begins, words = append(begins, len(words)), words+strings.ReplaceAll(t.own, "\x00", "|")+"\n"
			}
			for _, r := range calendar.Read(words, s.turns[i].at) {
				rule, label := "user:time", writ.User
				if _, is := calendar.Holds(text, []calendar.Reading{r}, s.turns[i].at.Location()); !is {
					begin, isTime := calendar.Day(text)
					if _, is = calendar.Holds(begin, []calendar.Reading{r}, s.turns[i].at.Location()); !is && r.Kind != calendar.Instant || !isTime {
						continue
					}
					rule, label = "user:day", writ.Model
				}
				var refs []gate.Ref
				for _, p := range r.At {
					n := len(begins) - 1
					for begins[n] > p.Start {
						n--
					}
					refs = append(refs, gate.Ref{Evidence: days[n].evidence, Tool: userTool, Start: p.Start - begins[n], End: p.End - begins[n], Label: writ.User})
				}
				add(rule, label, refs...)
			}
		}
	}
	for _, q := range quotes {
		add("user", writ.User, q)
		add("user:amount", writ.User, q)
		add("user:composite", writ.User, q)
		add("derived:fresh", writ.Model, q)
		for _, in := range quotes {
			if l.typ() != provenance.Path || in.Evidence != q.Evidence || q.End >= in.Start {
				continue
			}
			if t, _, _ := s.quote(q); provenance.Within(t.own[:q.Start], t.own[q.End:in.Start], t.own[in.End:]) {
				add("user:within", writ.User, q, in)
			}
		}
	}
	add(keptCall, writ.User)
	add(keptCall, writ.Model)
	if l.rule != nil && l.rule.Composed {
		s.readings(l, quotes, func(refs []gate.Ref) { add("open", writ.Model, refs...) })
	}
	for _, e := range same {
		add("output", e.Label, e)
		add(grownOutput, writ.System, e)
		add("seen", e.Label, e)
		add("invented", writ.Model, e)
		for _, q := range quotes {
			add("output", e.Label, e, q)
			add(grownOutput, writ.System, e, q)
			if party || opened {
				add("party", writ.User, e, q)
			}
		}
		for _, made := range same {
			add("output", e.Label, e, made)
		}
		for _, f := range titles {
			for _, p := range quotes {
				if s.turns[len(s.turns)-1].evidence != p.Evidence || !strings.EqualFold(quoted(p), "same parts as") {
					continue
				}
				for _, q := range quotes {
					if s.dictated(q) {
						add(ofNamed, min(e.Label, f.Label), e, f, p, q)
					}
				}
			}
		}
		for _, f := range senders {
			for _, q := range quotes {
				add("said_by", min(e.Label, f.Label), e, f, q)
			}
		}
	}
	for _, e := range other {
		add("seen", e.Label, e)
		for _, q := range quotes {
			if from(policy.FromDerived) && s.page != nil && e.Evidence == s.page.evidence {
				e.Label = writ.External
				add(ruleElement, writ.External, e, q)
			}
		}
		if l.typ() == provenance.Path {
			add("derived:fresh", writ.Model, e)
		}
		if l.rule != nil && l.typ() == provenance.Path {
			for _, q := range quotes {
				if text, _ := l.value.Text(); strings.HasSuffix(text, quoted(q)) {
					add("derived:typed_in", min(writ.User, e.Label), e, q)
				}
			}
		}
		for _, f := range other {
			if l.rule != nil && l.typ() == provenance.Path {
				add("derived:path_join", min(e.Label, f.Label), e, f)
			}
		}
	}
}

// readings yields what the atoms of a free text could rest on: of each a quote, or a
// place, or a place and who named it.
func (s *Session) readings(l *leaf, quotes []gate.Ref, yield func([]gate.Ref)) {
	all := [][]gate.Ref{nil}
	for _, a := range provenance.Atoms(l.says()) {
		var one [][]gate.Ref
		for _, q := range quotes {
			one = append(one, []gate.Ref{q})
		}
		for _, t := range []provenance.Type{a.Type, provenance.Untyped} {
			for _, p := range s.holding(strictjson.StringOf(a.Text), t) {
				one = append(one, []gate.Ref{p.ref()})
				for _, q := range quotes {
					one = append(one, []gate.Ref{p.ref(), q})
				}
			}
		}
		var next [][]gate.Ref
		for _, before := range all {
			for _, o := range one {
				next = append(next, slices.Concat(before, o))
			}
		}
		all = next
	}
	for _, refs := range all {
		yield(refs)
	}
}
