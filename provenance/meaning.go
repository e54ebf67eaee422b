package provenance

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/text"
)

// What stands around a phrase, and lets it be meant: its clause, request and rest.

// Means reports whether what stands around a phrase, which is the bytes [start, end) of
// a text, lets it be meant.
func Means(text string, start, end int) bool { return meant(plainly(text, start, end), start, end) }

// meant is Means of a text without manners.
func meant(text string, start, end int) bool {
	if !means(text, start, end, opens) {
		return false
	}
	rest := unhindered(withoutQuoted(text[end:min(len(text), end+longestRest)]), text[start:end])
	return !elsewhere(rest) && !elsewhere(placedBehind().ReplaceAllString(rest, "")) && !defersSettled(text[start:end], rest)
}

// Outright reports the same of a phrase that says which one, so that nothing behind it may
// say it more closely: "the largest file" is another one than "the largest file that Bob
// sent". There it ends its clause, or goes on with when it is to be done or with what else
// is.
func Outright(text string, start, end int) bool {
	text = plainly(text, start, end)
	return meant(text, start, end) && clauseEnds().MatchString(text[end:]) && !nthBefore().MatchString(text[max(0, start-longestRest):start])
}

// nthBefore is a number before a phrase within a line, which makes another one of it: "the 2. largest".
var nthBefore = text.Pattern(`(?:[^ \t\n][ \t]+|#)[0-9]+\.?[ \t]+$`)

var clauseEnds = text.Pattern(`(?i)^["'”’)]*(?:,?[ \t]+(?:please|now|immediately|right away|thanks|thank you|for me|bitte|jetzt|sofort|danke))*` +
	`(?:[ \t]*(?:$|[\n.;!?])|,?[ \t]+(?:and|then|und|dann)(?:$|[^\pL\pN-]))`)

// Refers reports the same of a phrase that orders nothing and says which things an order
// is of, as "the same people as" does: it stands behind an article, anywhere in a clause
// that tells of nobody's doing, or opens it, and nobody is taken out.
func Refers(text string, start, end int) bool {
	return means(plainly(text, start, end), start, end, func(clause string, _ []string, after string) (wish, is bool) {
		words := wordsOf(inBrackets().ReplaceAllString(clause, " "))
		lead := requestOf(words)
		rest := words[lead.n:]
		stands := len(rest) == 0 || articles[rest[len(rest)-1]] && !tells(rest) && !takesOut(words)
		return lead.wish && !lead.polite, stands && !denies(after) && !takesOut(wordsOf(after))
	})
}

// takesOut reports whether words leave somebody or something out.
func takesOut(words []string) bool { return hasAny(words, excluding) }

func means(text string, start, end int, stands func(clause string, phrase []string, after string) (wish, is bool)) bool {
	before, after := text[:start], unhindered(withoutQuoted(text[end:min(len(text), end+longestRest)]), text[start:end])
	sentence := sentenceOf(before)
	if endsQuotation(before) || isHeaded(before) || isPrinted(before, text[end:]) || len(before)-sentence > longestRest || inFile(before[sentence:]) {
		return false // nobody reads so much as one order
	}
	clauses := clausesOf(unplaced(unhindered(kept().ReplaceAllString(before[sentence:], "$1 it$2"), text[start:end])))
	own := len(clauses) - 1
	var lead request
	wonders := false
	for i, c := range clauses {
		words := wordsOf(c.text)
		r := requestOf(words)
		lead.polite, lead.soft = lead.polite || r.polite, lead.soft || r.soft
		wonders = wonders || hasAny(words, wondering)
		if hinders(clauses, i, words, r) {
			return false
		}
	}
	wish, well := stands(clauses[own].text, wordsOf(text[start:end]), after[:endOf(after)])
	if !well || (lead.polite || wish) && wonders || (wish || lead.soft) && wavers(text[max(0, start-longestRest):end]+after, after, lead.polite) {
		return false
	}
	if wish && slices.ContainsFunc(clauses[:own], func(c clause) bool { return !prefaces(wordsOf(c.text)) }) {
		return false
	}
	return (lead.polite || !isQuestion(after)) && !conditional(after) && !takenBack(text[start:end], after) && !waitsBehind(after) && !quoted(text, start)
}

// endsQuotation reports whether a text ends in a mark of a quotation: one that ends a word, with a
// blank behind it, ends what was quoted.
func endsQuotation(before string) bool {
	close := strings.TrimRight(before, " \t")
	r, n := utf8.DecodeLastRuneInString(close)
	if !isMark(r) || strings.ContainsRune(brackets, r) {
		return false
	}
	in, _ := utf8.DecodeLastRuneInString(close[:len(close)-n])
	return len(close) == len(before) || !isAlnum(in)
}

// whose is how a heading begins that says whose what follows is: "Kim's request", and not one of saysItself.
var whose = text.Pattern(`^\p{Lu}[\pL-]*['’]s\b|(?i)^(?:the|a|an)[ \t]+[\pL-]+['’]s\b`)

var (
	answered = text.Pattern(`(?i)^[ \t]*(?:(?:fatal|error|hint|warning|remote|usage|git|bash|zsh|sh):|![ \t]*\[|rejected\b)`)
	prompt   = text.Pattern(`(?:^|[\pL\pN~)\]][ \t]*)[$%][ \t]+$`)
)

// hinders reports whether a clause up to the phrase, of these words and with that request, has it
// not be meant.
func hinders(clauses []clause, i int, words []string, r request) bool {
	c := clauses[i]
	if i == len(clauses)-1 {
		return c.colon && !announces(wordsOf(clauses[i-1].text)) || denies(c.text) || asks(words, r) || consents(words)
	}
	return denies(c.text) && !describes(words) || hangs(words) || conveys(words) || attributes(words) || putsOff(words[r.n:]) || isDeferral(c.text) || consents(words) ||
		asks(words, r) && !(clauses[i+1].colon && announces(words))
}

// hasAny reports whether one of some words is of a set.
func hasAny(words []string, of map[string]bool) bool {
	return slices.ContainsFunc(words, func(w string) bool { return of[w] })
}

// unplaced is a text without where something is to be done, which is said right before it: "on
// https://leaf.example/contact fill in the form". An address or a path says so, and no other
// word, or what stands for a link.
func unplaced(text string) string {
	if m := topical().FindStringIndex(text); m != nil {
		return text[m[1]:]
	}
	m := fronted().FindStringSubmatchIndex(text)
	if m == nil || m[4] >= 0 && !isWhere(text[m[4]:m[5]]) {
		return text
	}
	return text[:m[3]]
}

var fronted = text.Pattern(`(?i)(^[ \t\n]*|[.!?;\n][ \t\n]*|,[ \t]+)(?:on|in|at|under|auf|unter)[ \t]+(?:(` + placeForm + `)|the page)[ \t]+$`)

// topical is a sentence that opens with the repository it is about: "acme/parser: close 42".
var topical = text.Pattern(`^[ \t\n]*[\pL\pN_.-]+/[\pL\pN_.-]*[\pL\pN_]:[ \t]+`)

// placedBehind is the same behind what is to be done, of something that has a number too.
var placedBehind = text.Pattern(`(?i)^(?:[ \t]+#?[0-9]+)?[ \t]+(?:of|for|on|in|at|under|auf|unter|von|aus)[ \t]+` + placeForm)

// placeForm is of letters, digits and what stands between them in paths and addresses, where
// nothing ends a clause.
const (
	placeForm = `[\pL\pN$~/.]` + placePart + `[/.#]` + placePart + `[\pL\pN]`
	placePart = `(?:[\pL\pM\pN$~/._#@%&=+\\-]|:[/\\0-9])*`
)

// isWhere reports whether what is of the form of a place is one: no date, time or version, none
// of words that say when or on which occasion ("Monday/Tuesday", "error/failure"), nothing that
// denies ("acme/parser.Never"), and no file.
func isWhere(place string) bool {
	words := wordsOf(place)
	when := func(w string) bool { return len(w) < 2 || dating[w] || supposing[w] || complaining[w] || occasions[w] }
	return !isFile(place) && !slices.ContainsFunc(words, func(w string) bool { return denying[w] || asking[w] || conditions[w] }) &&
		(rootForm().MatchString(place) || !dateForm().MatchString(place) && slices.ContainsFunc(words, func(w string) bool { return !when(w) }))
}

var (
	rootForm = text.Pattern(`^(?:[$~/.]|[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?:[:/]|$))`)
	dateForm = text.Pattern(`^[0-9]+[./:-]`)
	// occasions are words for when something is done, beside those of a day.
	occasions = wordSet(`pm uhr christmas holiday holidays breakfast lunch dinner success failure failures completion approval receipt arrival request merge push release
		practice doubt case cases emergencies outage outages need least most best worst first last may`)
)

// inFile reports whether a sentence says of what follows that it is done in a file: "in stack.go,
// push it onto the stack" is no order of ours.
func inFile(sentence string) bool {
	sentence = strings.TrimRight(sentence, " \t,") + " "
	m := fronted().FindStringSubmatchIndex(sentence)
	return m != nil && m[4] >= 0 && isFile(sentence[m[4]:m[5]])
}

// isFile reports whether a place is a file by its end, and no page of a host. A database is none:
// statements are run in it.
func isFile(place string) bool {
	place = strings.ToLower(strings.TrimRight(place, stops+quotes+brackets))
	first, last := strings.IndexAny(place, `/\`), strings.LastIndexAny(place, `/\`)
	end := place[strings.LastIndexByte(place, '.')+1:]
	if strings.Contains(place, "://") || strings.LastIndexByte(place, '.') <= last || first > 0 && len(Hosts(place[:first])) > 0 {
		return false
	}
	return fileEnds[end] && end != "db" && end != "sqlite" || domainEnds[end] && (first >= 0 || !siteEnds[end])
}

// siteEnds are those of domains that name a site sooner than a file.
var siteEnds = wordSet("ai app br cc in pro pub")

// unhindered is a text without what says for courtesy alone that it may not be possible, and with
// "please" for what denies that something is left undone. Around an order of something else it is without what
// says that no pull request and no branch is needed: "no PR needed, fix it on main".
func unhindered(text, order string) string {
	if !proposes().MatchString(order) {
		text = unproposed().ReplaceAllString(text, "$1")
	}
	text = reminding().ReplaceAllString(courtesy().ReplaceAllString(text, "$1"), "${1}please ")
	return toSay().ReplaceAllString(text, "$1 must $2")
}

var reminding = text.Pattern(`(?i)(?:\b(?:(?:don['’]t|do not|never) (?:forget|hesitate|fail)|feel free|be sure not to forget)|((?:^|[,.;:!?\n]|\b(?:and|yes|ok|okay|so|then))[ \t]*)(?:it['’]?s|it is) (?:ok|okay|fine|alright)) to[ \t]+`)

var courtesy = text.Pattern(`(?i)\bif (?:(?:it'?s |it is |at all )?possible|you (?:please|don['’]t mind))([,.;:!?]|$)`)

const proposed = `(?:PRs?|MRs?|(?:pull|merge) requests?|branch(?:es)?)`

var (
	proposes   = text.Pattern(`(?i)(?:^|[^\pL])` + proposed + `(?:$|[^\pL])`)
	unproposed = text.Pattern(`(?i)\bno (?:need (?:for|to (?:open|make|create)) (?:an? )?)?` + proposed + `(?: (?:is )?(?:needed|necessary|required))?([,.;:!?]|$)`)
)

// toSay is what something is to say, which asks nothing: "fix the README, it should say 1.26".
var toSay = text.Pattern(`(?i)((?:^|[,.;:!?\n]|\b(?:and|so|because))[ \t]*(?:it|this|that|(?:the|its|their)(?: [\pL\pN-]+){1,3}|[\pL\pN_-]+\.[a-z]+)) should (?:now |only |also |just )?(say|read|contain|mention|list|include|show|explain|describe|point|link)\b`)

// kept is what is done with all that somebody has, which asks nothing: "commit what I have and
// push it". Behind other words it may ask ("explain what I have to commit and push").
var kept = text.Pattern(`(?i)((?:^|[,;.!?\n]|\b(?:and|then|please|now|also|so|ok|okay))[ \t]*(?:commit|stage|stash|add|save|store|keep|take|use|submit|send))[ \t]+what(?:ever)?[ \t]+` +
	`(?:(?:I|we|you)(?:['’]ve)?[ \t]+(?:have|got|did|done|made|wrote|changed|edited|added|fixed|staged)|(?:is|['’]s)[ \t]+(?:there|here|staged|changed|left))` +
	`(?:[ \t]+(?:so far|here|there|now|right now|today))?([ \t]+(?:and|as|with|in|on|to|under|then)[ \t]|[ \t]*[,;.&+]|[ \t]*$)`)

// longestRest bounds what is read behind a phrase, and the sentence before it, in bytes.
const longestRest = 4 << 10

func wordSet(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

var (
	// definite are the articles that leave a phrase as it is: whose it is they do not say.
	definite = wordSet("the this that these those my our a an der die das den dem mein meine meinen unser unsere unseren")
	// idle are other words that may stand within a phrase.
	idle = wordSet(`please just kindly quickly now also immediately promptly simply carefully safely securely firmly properly fully completely
		bitte kurz gleich schnell jetzt mal auch`)
	// denying are words after which a phrase is denied, doubted or reported, in the
	// languages that are known here: in another one nothing is known of them.
	denying = wordSet(`not no never nor neither none nobody nothing without cannot dont doesnt wont avoid refuse forbid stop unless whether wrote writes
		said says told tells asks asked texted replied answered shouted shouts yelled yells screamed screams claims claimed insists demands demanded suggests suggested
		nicht kein keine keinen nie niemals niemand ohne weder ob schrieb schreibt sagt sagte fragt fragte
		pas jamais aucun aucune évite évitez nunca jamás tampoco nadie ningún ninguno ninguna nem não nao ninguém nenhum niet geen nooit zonder
		senza nessuno nessuna neanche nemmeno neppure zegt zei schreef dijo dijeron escribió detto scritto disse disseram escreveu`)
	// asking are those after which it is asked about, or of a case that may not be.
	asking = wordSet("if would could who what did wenn würde könnte wer hat si se")
	// ifDutch are those behind which a Dutch "als" is if; to a German it is as, or than.
	ifDutch = wordSet("het de een je dat dit alles ik hij ze iemand")
	// wondering are those that make of "can you" a question.
	wondering = wordSet("how why when where ever wie warum wann wo jemals")
	// leading are words that may stand before a request, or before what takes one back.
	leading = wordSet(`please bitte hey hi hello hallo ok okay so and und then dann now jetzt oh ah well actually rather sorry or but aber oder doch ach thanks danke
		just kindly quickly also again mal kurz gleich schnell noch auch por favor s'il te vous plaît graag next first finally lastly additionally afterwards furthermore
		simply immediately carefully safely gern gerne`)
	// pleading are those that make a request of any order.
	pleading = wordSet("please bitte kindly graag")
	// questioning are those with which a clause asks, its mark or not.
	questioning = wordSet(`how what when where why which whose should shall may might must is are was were do does did can could will would has have had
		wie was wann wo warum welche welcher welches wessen soll sollte sollen kann könnte können darf dürfen muss müssen ist sind war hat haben wird werden würde`)
	// joining are those behind which a clause begins as at its begin.
	joining = wordSet("and then und dann also y e et puis luego poi depois después")
	romance = wordSet("y e et puis luego poi depois después")
	// telling are those by which a clause is of somebody's doing, or the phrase of another verb.
	telling = wordSet("i he she we they you that to ich er wir ihr du man dass daß zu")
	// remarking are those that begin no order: what somebody saw, has or thinks of it.
	remarking = wordSet(`saw heard felt found got had kept left made noticed like love hate enjoy hope hoping think guess glad happy sad nice good great funny wow
		it there here who everybody everyone somebody someone`)
	// steering are those that belong to the verb before them.
	steering = wordSet("on off up down in out over to from with for auf aus an ab ein zu mit von")
	// bringing are the verbs that bring a state about.
	bringing = wordSet("get getting have having keep keeping make making set setting put putting turn turning switch switching")
	// announcing are those that say of what follows a colon that it is asked for.
	announcing = wordSet("please bitte task tasks todo next first second third finally step also then steps do this the following one more another last thing things")
	// excluding take out of what is asked for.
	excluding = wordSet(`except excepting excluding excl without minus but besides apart aside other barring less only
		instead rather unlike leaving ignore ignoring skip skipping statt anstatt
		außer ausser ohne bis abzüglich ausgenommen nur`)
	// takingBack begin what takes back, or denies, what was said before it.
	takingBack = wordSet(`rather sorry leave keep no nope nah not never don't don’t dont stop wait cancel scratch kidding joking nvm forget nevermind disregard
		nein nee nö nicht nie niemals stopp halt kein keine keinen
		non attends attendez espera espere déjalo déjala não aspetta lascialo lasciala anzi wacht`)
	// welcoming say of what follows that it is wished for.
	welcoming = wordSet("grateful great fantastic wonderful lovely nice helpful useful awesome amazing perfect good ideal")
	// wavering are those by which a wish is one for another time, or for his own hands.
	wavering = wordSet(`later someday sometime sometimes eventually tomorrow soon myself ourselves always usually often every daily but however although though
		wondering wonder curious asking maybe perhaps trying tried unable automatically first ideas idea suggestions advice options tips draft
		more less each regularly twice one future yesterday ago last case place`)
	// dating are those that say for when something is, which is not for now.
	dating = wordSet(`tomorrow tonight later someday night nights evening evenings morning mornings afternoon noon midnight week weeks weekend weekends month months year years
		spring summer autumn winter sprint sprints hour hours minute minutes christmas easter thanksgiving sometime someday future day days monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays sundays
		january february april june july august september october november december
		morgen übermorgen später abends nachts heute woche wochen stunde stunden semaine semana settimana montag dienstag mittwoch donnerstag freitag samstag sonntag
		demain lundi mardi mercredi jeudi vendredi samedi dimanche mañana lunes martes miércoles jueves viernes sábado domingo
		domani lunedì martedì mercoledì giovedì venerdì sabato domenica amanhã feira maandag dinsdag woensdag donderdag vrijdag zaterdag zondag`)
	// supposing are those by which it is asked what we could do, or would in some other case.
	supposing = wordSet("hypothetically theoretically theory principle general accident mistake emergency simulation")
	// complaining are those that say what is in the way of a wish.
	complaining = wordSet("crash crashes crashed fail fails failed hang hangs error errors stuck broken breaks jammed stay stays stalls stalled hard difficult seems problem problems")
	// explaining begin an order for words about what was wished for, and conveying one for words to somebody.
	explaining = wordSet(`find show give tell write remind walk guide read explain suggest compare draft recommend list teach summarize summarise propose describe
		review translate look`)
	conveying = wordSet(`tell text write mail email message remind ask note inform notify dear schreib schreibe sag sage frag frage erinnere liebe lieber
		dis dites écris dile dígale diga zeg schrijf`)
	// cited are what a heading says of that somebody wrote.
	cited = wordSet("mail mails email emails message letter comment reply post transcript log chat quote nachricht brief kommentar zitat notes minutes ideas questions history words wish cheatsheet protokoll notizen ideen fragen")
	// noting begin a heading over what is to be kept, owned one over what is somebody's, filing one over what goes
	// into something.
	noting     = wordSet("save remember document copy print record log quote memorize memorise note notes merke merk notiere speichere dokumentiere notiz notizen backlog forbidden verboten")
	attempted  = wordSet("did tried ran")
	saysItself = wordSet("today's let's here's what's that's it's there's")
	owned      = wordSet("his her their seine ihre")
	filing     = wordSet("add put insert append include paste füge setz setze pack")
	// wanted are words by which one that asks says what is wished for: "what I want you to do".
	wanted = wordSet("want need like next todo should please möchte will brauche")
	// reporting are those with which a sentence ends that somebody else said.
	reporting = wordSet(`said says wrote writes reads begins goes states stated states reported reports requires warns warned demands demanded insists insisted shouted yelled
		sagt sagte schrieb schreibt bat bittet rief ruft steht heißt meinte meint`)
	// being are the verbs behind what a sentence is of.
	being = wordSet(`is was were are would sounds sounded seems seemed means meant fits has had will could should may might does used reads ist war wäre klingt heißt bedeutet`)
	// negating are those behind an order by which it is none, or not yet.
	negating = wordSet("not never nothing none nichts rien nada niente niets nicht nie niemals kein keine keinen erst niet geen nooit pas jamais nunca jamás não nao")
	// tentative are those of a request that may as well be one for advice.
	tentative = wordSet("help assist possible hoping wondering wonder might appreciate")
	// self are the verbs of a question about what the user himself does.
	self = wordSet("do did can could should shall may might must would am")
)

// wordsOf are the words of a text, in small letters.
func wordsOf(text string) []string {
	words := strings.FieldsFunc(strings.ReplaceAll(strings.ToLower(text), "’", "'"), func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' })
	for i := range words {
		words[i] = strings.Trim(words[i], "'")
	}
	return slices.DeleteFunc(words, func(w string) bool { return w == "" })
}

// clause is a part of a sentence, and whether it stands behind a colon.
type clause struct {
	text  string
	colon bool
}

// clausesOf are the clauses of a sentence; the last one may be empty. What stands within
// a number, a time or the name of a file ends none.
func clausesOf(sentence string) (out []clause) {
	colon := false
	dotless := inName().ReplaceAllStringFunc(sentence, func(s string) string { return strings.ReplaceAll(s, ".", "_") })
	for {
		i := breakOf(dotless, isBreak)
		if i < 0 {
			return append(out, clause{sentence, colon})
		}
		out = append(out, clause{sentence[:i], colon})
		r, n := utf8.DecodeRuneInString(sentence[i:])
		sentence, dotless, colon = sentence[i+n:], dotless[i+n:], r == ':' || r == '：'
	}
}

// inName is a stretch with a dot within, as the name of a file has.
var inName = text.Pattern(`[\pL\pN_](?:\.[\pL\pN_]+)+`)

// breakOf returns where a text first breaks but within a number or a time, -1 where it
// does not.
func breakOf(text string, breaks func(rune) bool) int {
	for i := 0; ; i++ {
		next := strings.IndexFunc(text[i:], breaks)
		if next < 0 {
			return -1
		}
		if i += next; i == 0 || i+1 >= len(text) || !isNumeral(text[i-1]) || !isNumeral(text[i+1]) {
			return i
		}
	}
}

// negates reports whether a word denies, doubts or reports what its clause says.
func negates(w string) bool { return denying[w] || strings.HasSuffix(w, "n't") }

// denies reports whether a clause denies, doubts or reports.
func denies(clause string) bool { return slices.ContainsFunc(wordsOf(clause), negates) }

// asks reports whether the words of a clause ask, in any of them or by the first.
func asks(words []string, r request) bool {
	for i := r.n; i < len(words); i++ {
		if asking[words[i]] || words[i] == "als" && i+1 < len(words) && ifDutch[words[i+1]] {
			return true
		}
		if joining[words[i]] {
			i += requestOf(words[i+1:]).n
		}
	}
	first := unled(words)
	return !r.polite && !r.wish && len(first) > 0 && questioning[first[0]] && !finishes(first)
}

// describes reports whether a clause that denies says no more than what a thing is not, as
// "the fuel level is not satisfactory" does: of what is asked for next it denies nothing.
func describes(words []string) bool {
	at := slices.IndexFunc(words, negates)
	if lacks(words, at) {
		return true
	}
	is := func(w string) bool { return w == "is" || w == "are" }
	if at < 1 || at == len(words)-1 || at == 1 && (words[0] == "it" || words[0] == "that" || words[0] == "this") || at == 2 && words[at] == "not" && (words[0] == "it" || words[0] == "that" || words[0] == "this") || words[at] == "not" && !is(words[at-1]) || words[at] != "not" && words[at] != "isn't" && words[at] != "aren't" {
		return false
	}
	rest := words[at+1:]
	return len(rest) <= 4 && !slices.ContainsFunc(rest, func(w string) bool { return telling[w] || negates(w) })
}

// lacks reports whether a clause that denies, at a word, says no more than that nothing needs a thing, or is
// not so any more: "not needed any more", "it no longer works", "we don't need it".
func lacks(words []string, at int) bool {
	if at < 0 || at+1 >= len(words) || len(words)-at > 8 || words[0] == "you" || words[0] == "du" {
		return false
	}
	next, rest := words[at+1], words[at+2:]
	switch {
	case hasAny(rest, telling) || slices.ContainsFunc(rest, negates):
		return false
	case words[at] == "no":
		return next == "longer" && len(rest) > 0
	case words[at] == "not" && at == 0:
		return missed[next]
	}
	return (strings.HasSuffix(words[at], "n't") || strings.HasSuffix(words[at], "nt")) && needing[next]
}

var (
	missed  = wordSet("needed required planned used supported reproducible reproduced affected relevant valid urgent important worth interesting")
	needing = wordSet("need use reproduce happen occur exist apply matter work fix")
)

// prefaces reports whether a clause before a wish says no more than what it comes before
// or behind, or in which mood: "in the game" and "tomorrow" say of what it is.
func prefaces(words []string) bool {
	words = unled(words)
	if len(words) == 0 || isGerund(words[0]) && words[0] != "according" {
		return true
	}
	next := ""
	if len(words) > 1 {
		next = words[1]
	}
	switch words[0] {
	case "before", "after", "once":
		return ours[next] || isGerund(next) || words[0] == "before" && (next == "i" || next == "we")
	case "with", "since":
		return true
	}
	return false
}

// hangs reports whether a clause ends where the verb of somebody else is to follow, "Bob will, I
// think, close it", or is a doubt and nothing more.
func hangs(words []string) bool {
	n := len(words)
	return n > 1 && modal[words[n-1]] && words[n-2] != "you" && words[n-2] != "du" ||
		n > 1 && words[n-1] == "to" && strings.HasSuffix(words[n-2], "s") || n == 1 && doubting[words[0]]
}

var (
	// modal are the verbs that another one follows.
	modal    = wordSet("will would shall should can could may might must wird würde soll sollte kann könnte darf muss")
	doubting = wordSet("maybe perhaps possibly hypothetically theoretically eventually vielleicht eventuell möglicherweise")
)

// conveys reports whether a clause says no more than to whom the rest is to be said.
func conveys(words []string) bool {
	words = unled(words)
	return len(words) > 1 && len(words) <= 3 && conveying[words[0]]
}

// elsewhere reports whether what stands behind a phrase says of it that it is what
// somebody else said, what the sentence is of, or for another time, or denies it.
func elsewhere(after string) bool {
	for i, c := range clausesOf(after[:endOf(after)]) {
		words := wordsOf(c.text)
		switch {
		case hasAny(words, supposing):
			return true
		case i > 0:
			if rest := unled(words); len(rest) > 0 && (explaining[rest[0]] && len(unled(rest[1:])) == 0 || whatFor[rest[0]]) {
				return true
			}
			if len(words) <= 6 && !slices.Contains(words, "i") && hasAny(words, reporting) {
				return true
			}
		case ofElse(words, after):
			return true
		}
	}
	return false
}

// whatFor are words with which a clause asks about what was said before it.
var whatFor = wordSet("what why how was wie warum wieso weshalb")

// ofElse reports whether the rest of the phrase's own clause, of these words, says so.
func ofElse(words []string, after string) bool {
	for i, w := range words {
		if joining[w] {
			break
		}
		if negating[w] && !(i > 0 && words[i-1] == "as") { // "as not planned"
			return true
		}
	}
	n := 0
	for n < len(words) && (strings.HasSuffix(words[n], "ly") || idle[words[n]]) {
		n++
	}
	if n < len(words) && being[words[n]] && !appreciates(after) {
		return true
	}
	return defers(strings.Fields(clausesOf(numbers().ReplaceAllString(after[:endOf(after)], ""))[0].text), false)
}

// counting are words before one for a time, beside those that steer.
var counting = wordSet("at next every each one some the um am a an two three few end of within")

// announces reports whether what stands before a colon says that the rest is asked for.
func announces(words []string) bool {
	rest := words[requestOf(words).n:]
	return !slices.ContainsFunc(rest, func(w string) bool { return !announcing[w] })
}

// unled are words without those that may lead a request.
func unled(words []string) []string {
	for len(words) > 0 && leading[words[0]] {
		words = words[1:]
	}
	return words
}

var inBrackets = text.Pattern(`\([^()]*\)`)

// opens reports whether what follows a part of a clause opens it, behind what is to be
// done before it too, or stands behind an article in a clause that is a request and tells
// of nobody's doing; and whether the request is a wish. A phrase that says what a thing is
// stands there behind what brings it about alone, and another one without a verb where
// the sentence ends with it, as "and again the largest file" does.
func opens(clause string, phrase []string, after string) (wish, is bool) {
	a := aheadOf(clause)
	wish = a.lead.wish && !a.lead.polite
	switch {
	case a.tells() || len(phrase) == 1 && len(a.first) == 2 && explaining[a.first[0]] && !hasAny(a.first, definite) && a.first[1] != "it":
		return wish, false // "explain commit and push"
	case len(phrase) > 0 && isGerund(phrase[0]):
		return wish, a.asksDoing(phrase, after, wish)
	}
	return wish, a.asksFor(phrase, after)
}

// ahead is what stands in a clause before a phrase: a request, and the rest of the words. What is done
// before the phrase is an order too, or a state that is asked for: then own are the words behind it.
type ahead struct {
	lead, inner request // inner is that of own
	rest, own   []string
	first       []string // of the rest, what is done before
	joined      bool
	marked      bool // the phrase is set in marks
}

// toValue is what something is set or renamed to, which is nobody's doing: "to 128", "to a.go".
var toValue = text.Pattern(`(?i)[ \t]+to[ \t]+(?:[^\s]*[0-9./_][^\s]*|"[^"]*"|“[^”]*”|'[^']*')`)

func aheadOf(clause string) (a ahead) {
	clause = strings.TrimRight(inBrackets().ReplaceAllString(clause, " "), " \t")
	if r, n := utf8.DecodeLastRuneInString(clause); isMark(r) && !strings.ContainsRune(brackets, r) {
		if i := strings.LastIndexAny(clause[:len(clause)-n], quotes); i >= 0 {
			clause, a.marked = clause[:i], true
		}
	}
	words := wordsOf(toValue().ReplaceAllString(clause, ""))
	a.lead = requestOf(words)
	a.rest = words[a.lead.n:]
	a.own = a.rest
	if at := lastJoined(a.rest); at >= 0 {
		a.joined, a.first, a.inner = true, a.rest[:at-1], requestOf(a.rest[at:])
		a.own = a.rest[at+a.inner.n:]
	}
	return a
}

// tells reports whether it is of somebody's doing: "Kim and I need to".
func (a *ahead) tells() bool {
	return tells(a.first) || waits(a.first) || hasAny(a.first, modal) || len(a.first) > 1 && !a.lead.asked && (articles[a.first[0]] || remarking[a.first[0]]) || a.inner.wish || tells(a.own)
}

// asksDoing reports whether it asks for what a phrase in -ing says.
func (a *ahead) asksDoing(phrase []string, after string, wish bool) bool {
	if behind := wordsOf(after); len(phrase) == 1 && len(behind) > 0 && !articles[behind[0]] && !steering[behind[0]] && !idle[behind[0]] && behind[0] != "it" && behind[0] != "about" && behind[0] != "x" {
		return false // "posting guidelines"
	}
	return len(a.own) == 0 && !a.marked && (a.inner.doing || a.lead.doing && (!a.joined || a.inner.n == 0 && isGerund(a.rest[0]))) ||
		len(phrase) > 1 && by(a.own, a.lead) && !wish || len(a.rest) == 0 && appreciates(after)
}

// asksFor reports whether it asks for what another phrase says.
func (a *ahead) asksFor(phrase []string, after string) bool {
	own, states := a.own, a.lead.states || a.inner.states
	sentence := isSentence(phrase)
	if len(own) == 0 && !a.marked {
		return !sentence || states
	}
	own, article := unarticled(own)
	if !a.marked && (!article || len(phrase) == 1) {
		return false // a verb opens its clause; behind an article the word is no verb
	}
	n := len(own)
	result := ofState(phrase)
	if n == 0 {
		return states || after == "" && a.lead.n > 0 && !result && !sentence
	}
	verb, alone := own[0], n == 1 || n == 2 && steering[own[1]]
	if sentence || articles[verb] || result && !(bringing[verb] && alone) {
		return false
	}
	return a.lead.asked || a.inner.asked || !remarking[verb] && !strings.HasSuffix(verb, "ed") && alone
}

// unarticled are words without an article at their end, and what leads to one.
func unarticled(words []string) (rest []string, article bool) {
	n := len(words)
	for n > 0 && (articles[words[n-1]] || idle[words[n-1]] || words[n-1] == "all" || words[n-1] == "of") {
		n--
	}
	if n < len(words) {
		last := words[len(words)-1]
		article = articles[last] || last == "all"
	}
	return words[:n], article
}

// appreciates reports whether what follows makes a request of what is done: that it, and
// nothing else, would be appreciated, by nobody else.
func appreciates(after string) bool {
	clauses := clausesOf(after[:endOf(after)])
	m := appreciated().FindStringSubmatch(strings.Join(wordsOf(clauses[0].text), " "))
	return m != nil && !slices.ContainsFunc(strings.Fields(m[1]), func(w string) bool { return questioning[w] || asking[w] || joining[w] }) &&
		!slices.ContainsFunc(clauses[1:], func(c clause) bool { return len(unled(wordsOf(c.text))) > 0 })
}

var appreciated = text.Pattern(`^(.*?)\b(?:would|will) be (?:[a-z]+ly )?appreciated(?: by me| by us| now| a lot| very much)?$`)

// by reports whether words say that a state is to be brought about by what follows, as
// "let's get it ready by starting the engine" does: it is no question what that takes.
func by(words []string, lead request) bool {
	n := len(words)
	if n < 3 || n > 6 || words[n-1] != "by" || !bringing[words[0]] || !lead.asked || lead.question {
		return false
	}
	of := func(w string) bool { return w == "of" || w == "a" || w == "an" || w == "some" || w == "me" }
	return !strings.HasSuffix(words[n-2], "ed") && !slices.ContainsFunc(words, of)
}

// isSentence reports whether the words of a phrase say that something is so: not those that say of
// whom it is, as "add everyone who is missing" does.
func isSentence(phrase []string) bool {
	for i, w := range phrase {
		if (w == "is" || w == "are") && (i < 2 || phrase[i-1] != "who") {
			return true
		}
	}
	return false
}

// ofState reports whether the words of a phrase say what a thing is, or becomes.
func ofState(phrase []string) bool {
	return len(phrase) > 0 && slices.ContainsFunc(phrase[1:], func(w string) bool {
		return w == "on" || w == "off" || strings.HasSuffix(w, "ed") || strings.HasSuffix(w, "ing")
	})
}

// tells reports whether words are of somebody's doing.
func tells(words []string) bool {
	for i, w := range words {
		if pronoun, _, short := strings.Cut(w, "'"); short && telling[pronoun] {
			return true // "I'll"
		}
		if telling[w] && !(w == "to" && i+1 < len(words) && (articles[words[i+1]] || i > 0 && turningTo[words[i-1]])) && !(w == "that" && isThing(words, i)) {
			return true
		}
	}
	return false
}

// turningTo are words behind which "to" says where: "back to main".
var turningTo = wordSet("back go switch return over")

// isThing reports whether the "that" of some words is what their verb is of: "put that on a shelf".
func isThing(words []string, i int) bool {
	return i == 1 && !remarking[words[0]] && !explaining[words[0]] && (i+1 == len(words) || steering[words[i+1]] || idle[words[i+1]])
}

// lastJoined returns where a clause goes on behind the last of its words that join, and
// -1 where none does. In Romance languages, where what one does is said as what he is told ("Kim
// mergea y pushea"), the clause has to begin with an order.
func lastJoined(words []string) int {
	for i, w := range slices.Backward(words) {
		if joining[w] && (!romance[w] || ordering()[words[0]]) {
			return i + 1
		}
	}
	return -1
}

// ordering are the words with which an order of the lexicon begins.
var ordering = sync.OnceValue(func() map[string]bool {
	return beginning("delete", "close", "reopen", "resolve", "mark", "merge", "push", "upload", "open", "restart", "undo", "abort", "continue", "ignore", "type", "choose", "search", "forget", "edit", "turn", "git fetch", "git pull")
})

// beginning are the words with which some meanings of the lexicon begin.
func beginning(named ...string) map[string]bool {
	all := map[string]bool{}
	for _, name := range named {
		for _, w := range (Wording{meanings()[name]}).ends(true) {
			all[lower(w)] = true
		}
	}
	return all
}
