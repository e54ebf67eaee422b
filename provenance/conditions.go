package provenance

import (
	"slices"
	"strings"
	"sync"

	"github.com/writ-project/writ/internal/text"
)

// What puts an order off: a time, something that has to happen first, or somebody's word for it.

var (
	// delaying begin what has to happen first, unless we are to make it happen.
	delaying = wordSet(`once until unless provided providing assuming supposing whenever sobald solange sofern falls nachdem quand lorsque cuando quando wanneer zodra
		pending appena purché caso indien mits zolang mocht nadat`)
	// following begin the same where more stands behind them: by themselves they are "then".
	following = wordSet("after upon nach après tras después dopo após depois")
	// whenWays are those of several words.
	whenWays = ways(`as soon as|as long as|so long as|the moment|the minute|in case|in the event|on condition|on the condition|by the time|subject to|contingent on|
		dès que|dès qu'il|dès qu'elle|une fois|tant que|au cas où|à condition|à moins|pourvu que|en cuanto|una vez|siempre que|en caso|a menos|a condición|
		non appena|una volta|a condizione|a meno|in caso|assim que|uma vez|desde que|logo que|op voorwaarde|na de|na het|
		après que|après avoir|après le|après la|después de|después del|después que|depois de|depois do|depois da|depois que|dopo che|dopo il|dopo la|dopo aver`)
	// closings are ends of what is worked in, lasting the words before what goes on meanwhile, and moments and
	// signals what something is done at: behind a word of timing, or of cueing.
	closings  = wordSet("eod cob eob eow eom eoq eoy feierabend")
	lasting   = wordSet("during throughout amid amidst während pendant durante tijdens")
	moments   = wordSet("noon midday lunch lunchtime breakfast dinner dawn dusk sunrise sunset daybreak bedtime standup kickoff launch mittag mittags midi mediodía mezzogiorno middag")
	timing    = wordSet("at by around till until um gegen vers à las alle às om")
	signals   = wordSet("signal sign cue word say-so go go-ahead ok okay green command mark call zeichen señal segnale sinal")
	cueing    = wordSet("on at upon auf au sur a op with")
	hourWords = wordSet("am pm uhr uur o'clock oclock sharp heures")
	// onDay are before a day that is written short or as a number, shortDays the former, spans what may pass first,
	// and hours those of a clock that are words.
	onDay     = wordSet("on by until till am bis zum el le al em op")
	shortDays = wordSet("mon tue tues wed weds thu thur thurs fri sat sun")
	spans     = wordSet("min mins hr hrs sec secs second seconds moment bit few while quarter fortnight")
	hours     = wordSet("one two three four five six seven eight nine ten eleven twelve half quarter")
	// limiting may stand before one.
	limiting = wordSet("only nur erst seulement uniquement solo sólo solamente só somente apenas alleen pas soltanto")
	// ours begin what we do ourselves, or what was spoken of.
	ours = wordSet("you you've you're that that's this this's it it's its these those done")
	// awaited are of what we do not bring about.
	awaited = wordSet("hear see get receive notice dark late approved accepted confirmed reviewed agreed signed granted authorized authorised allowed")
	// waiting begin what is waited for, before one of till.
	waiting = wordSet("wait hold warte warten attends attendez espera espere espérate aspetta aspettate wacht")
	till    = wordSet("for until till on off auf bis que qu'il l'accord che finché até op tot con her")
	// consent is what somebody gives before something is done, and scrutiny what he does then.
	consent = wordSet(`approval approvals consent permission go-ahead sign-off signoff authorization authorisation agreement confirmation blessing okay
		zustimmung freigabe genehmigung erlaubnis einverständnis einwilligung bestätigung accord l'accord autorisation l'autorisation approbation l'approbation permiso aprobación autorización
		permesso approvazione consenso autorizzazione permissão aprovação autorização toestemming goedkeuring akkoord`)
	scrutiny = wordSet("review reviews check inspection prüfung durchsicht revue relecture revisión revisione revisão controle")
	// under are those by which an order depends on it.
	under = wordSet("with without following upon pending subject under awaiting mit ohne avec sans con sin senza com sem met zonder bajo previa previo")
	// consulting begin an order for somebody's word, and beforehand say that it comes first.
	consulting = wordSet(`ask check confirm consult talk speak verify clear run frag frage sprich prüf prüfe demande demandez vérifie vérifiez pregunta pregúntale pregunte consulta verifica
		habla chiedi senti pergunte fale verifique vraag overleg controleer`)
	beforehand = wordSet("first before beforehand zuerst vorher erst davor d'abord avant primero antes prima primeiro eerst vooraf")
	// against are words behind which another clause begins than the one that orders.
	against = wordSet("but aber and und then dann mais et pero y ma e mas maar en")
	// opinions are the verbs with which a clause ends that says whose words the next ones are, beside
	// those of reporting.
	opinions = wordSet(`recommends recommended advises advised proposes proposed thinks believes comments commented
		findet empfiehlt rät vorschlägt meinte demande demandé recommande propose pense pide pidió recomienda propone piensa
		chiede chiesto consiglia pensa pede pediu recomenda acha vraagt vroeg adviseert vindt denkt`)
	sources = wordSet("according laut selon según secondo segundo volgens")
	// conditions are those behind a phrase that say when it holds, or what holds instead.
	conditions = wordSet(`if unless when whenever once until till while after before provided providing assuming except should instead actually
		wenn falls sobald sofern solange bevor nachdem bis außer stattdessen lieber
		si quand lorsque sauf cuando hasta salvo excepto se quando finché tranne wanneer zodra tenzij totdat
		pending purché indien mits zolang nadat contingent`)
	// acting are those whose doing an order comes "before".
	acting = wordSet("i we he she they my our his her their the a")
	// informing are those behind whose object it is said what is told, and of when: "tell me when it is done".
	informing = wordSet("tell ping notify inform show remind warn message update")
)

// putsOff reports whether a clause names what has to happen first, or says when.
func putsOff(words []string) bool {
	n := len(words)
	if n > 0 && n <= 3 && dating[words[n-1]] || n > 1 && beforehand[words[n-1]] && (explaining[words[0]] || words[0] == "let") {
		return true // "next week", "on Sundays", "show me the diff first"
	}
	for len(words) > 1 && limiting[words[0]] {
		words = words[1:]
	}
	begin := delays(words)
	return begin > 0 && !undertakes(words, begin) || waits(words)
}

// defers reports whether words begin with when something is to be done, at whose word, or that it may
// not be: "on Friday", "at 5pm", "EOD", "on my signal", "during the night", "maybe". With hour "at 5" does too.
func defers(words []string, hour bool) bool {
	at, owned := "", false
	for n := 0; n < len(words) && n < longestDelay; n++ {
		w, next := bare(words[n]), nextOf(words[n:])
		ends := n+1 == len(words) || on[next] || courteous[next] || joining[next] || limiting[next]
		switch {
		case isPast(w, next), at == "for" && dating[w] && !ends && !dating[next] && !timing[next] && !isNumeral(next[0]):
			return false // "last week", "for the Friday demo"
		case dating[w] && !owned, closings[w], lasting[w], doubting[w] && (n+1 == len(words) || placing[next]):
			return true
		case isDay(words[n:], at), passes(words[n:], at, ends):
			return true
		case hourForm().MatchString(words[n]), hours[w] && timing[at]:
			return hourEnd().MatchString(w) || hour && timing[at] && (ends || hours[next] || w == "half" || w == "quarter") || dating[next] || months[next] || hourWords[next]
		case moments[w], signals[w]:
			return ends && (timing[at] && moments[w] || isCue(w, at, owned && !ourOwn[bare(words[n-1])]))
		case at != "" && w == "a": // "in a bit", and not Spanish
		case timing[w], cueing[w], steering[w], onDay[w]:
			at = w
		case owning[w], whose().MatchString(words[n]):
			owned = true
		case w != "" && !counting[w] && !idle[w] && !strings.HasSuffix(w, "ly"):
			return false
		}
	}
	return false
}

// isPast reports whether words say of a time that it is over.
func isPast(w, next string) bool {
	return past[w] && dating[next] && next != "day" && next != "minute" || next == "ago"
}

// isDay reports whether words behind one that a day follows begin with one that is short, or in numbers.
func isDay(words []string, at string) bool {
	w, next := bare(words[0]), nextOf(words)
	return onDay[at] && (dayForm().MatchString(words[0]) || shortDays[w] || months[w] && next != "" && isNumeral(next[0]))
}

// passes reports whether words, behind at, begin with what is to pass first: "in 10m", "in a bit", "10 min from now".
func passes(words []string, at string, ends bool) bool {
	w := bare(words[0])
	return at == "in" && (spanForm().MatchString(w) || spans[w] && ends) ||
		w != "" && isNumeral(w[0]) && spans[nextOf(words)] && (at == "in" || len(words) > 3 && bare(words[3]) == "now")
}

// isCue reports whether a word behind at is a signal. "With" one it is another's: one's own is given.
func isCue(w, at string, anothers bool) bool {
	return cueing[at] && signals[w] && (at != "with" || anothers)
}

// isDeferral reports whether a clause says no more than that.
func isDeferral(clause string) bool {
	words := strings.Fields(clause)
	for len(words) > 0 && leading[bare(words[0])] {
		words = words[1:]
	}
	return len(words) > 0 && len(words) <= mostPreface && defers(words, true) && !hasAny(wordsOf(clause), being) && !tells(wordsOf(clause))
}

// defersSettled reports whether what is said behind an order of something that is there, of which it says by
// a number or a pronoun what it is, says so anywhere: such an order has no time of its own.
func defersSettled(phrase, rest string) bool {
	words := wordsOf(phrase)
	if len(words) == 0 || !timeless()[words[0]] {
		return false
	}
	last := words[len(words)-1]
	if numbers().FindString(rest) == "" && (len(words) < 2 || !pointing[last] && last != "it") {
		name := nameForm().FindString(rest) // "restart deployment shop", "push fix-9"
		if name == "" || haveDay[last] || !isNoun(last, kinds) && !strings.ContainsAny(name, "0123456789_/-") {
			return false
		}
		rest = rest[len(name):]
	}
	rest = numbers().ReplaceAllString(rest[:endOf(rest)], "")
	if slices.ContainsFunc(inBrackets().FindAllString(rest, -1), func(in string) bool { return isDeferral(strings.Trim(in, "()")) && !articles[wordsOf(in + "x")[0]] }) {
		return true
	}
	clauses := clausesOf(inBrackets().ReplaceAllString(rest, " "))
	return defersWithin(strings.Fields(clauses[0].text)) || slices.ContainsFunc(clauses[1:], func(c clause) bool { return isDeferral(c.text) })
}

// defersWithin reports whether the words behind such an order say so up to a dash, or to what says something else.
func defersWithin(own []string) bool {
	for i := 0; i < len(own); i++ {
		w := bare(own[i])
		switch {
		case i > 1 && (w == "from" || w == "of") && articles[bare(own[i-2])]:
			i++ // "the fix from Friday"
		case strings.Trim(own[i], "-–—") == "":
			return isDeferral(strings.Join(own[i+1:], " "))
		case defers(own[i:], true) && (i == 0 || !articles[bare(own[i-1])] && !past[bare(own[i-1])]):
			return true
		case goesOff(w, nextOf(own[i:])):
			return false
		}
	}
	return false
}

// kinds are words for what is there and has a name of its own, past those before a time that is over, and ourOwn
// those of what he gives himself.
var (
	kinds  = []string{"branch", "deployment", "pod", "pods", "service", "statefulset", "daemonset", "release", "tag", "stash"}
	past   = wordSet("last letzte letzten letzter letzten vergangene")
	ourOwn = wordSet("my our mein meine meiner unser unsere mon mi mio")
)

// nameForm is one word that calls what an order is of.
var nameForm = text.Pattern(`^[ \t]+[\pL\pN_][\pL\pN_./-]*`)

// goesOff reports whether a word, with the next one, begins what says something else: another order, why, for what, or before what.
func goesOff(w, next string) bool {
	return joining[w] || w == "before" || against[w] && (w != "en" || !spanishPlace().MatchString(next)) || reasoning[w] || w == "as" && (telling[next] || ours[next]) || (w == "for" || w == "für") && !favoured[next] && next != "now"
}

// spanishPlace follows an "en" that is no Dutch "and".
var spanishPlace = text.Pattern(`/|^(?:el|la|los|las|mi|un|una|le|les|production|producción)$`)

var reasoning = wordSet("because since so that which who whose saying telling noting stating mentioning explaining weil da dass damit car parce afin porque para perché affinché pois omdat zodat")

// numbers are those of what an order is of, right behind it.
var numbers = text.Pattern(`^[ \t]*(?:[^\s]*[^\s0-9]/[^\s]*[#/][0-9]+|` + numberList + `)`)

// timeless are the orders of the lexicon that are of what is there, and have no time of their own.
var timeless = sync.OnceValue(func() map[string]bool {
	return beginning("delete", "close", "reopen", "resolve", "merge", "push", "restart", "undo", "abort")
})

// delays returns how many words say at the begin of a clause that it names what has to happen first.
func delays(words []string) int {
	switch n := beginsWith(words, whenWays); {
	case n > 0:
		return n
	case len(words) > 0 && delaying[words[0]], len(words) > 1 && following[words[0]]:
		return 1
	}
	return 0
}

// undertakes reports whether a clause, behind the n words that delay, is of what we do ourselves:
// "once you are done", "after fixing it".
func undertakes(words []string, n int) bool {
	behind := words[n:]
	if len(behind) == 0 || words[0] != "once" && words[0] != "after" && (n < 2 || words[1] != "soon") {
		return false
	}
	return (ours[behind[0]] || behind[0] == "possible" || words[0] == "after" && isGerund(behind[0])) && !hasAny(behind[1:], awaited) && !hasAny(behind[1:], dating)
}

// finishes reports whether a clause says no more than that we are done with what comes before.
func finishes(words []string) bool {
	n := len(words)
	return words[0] == "when" && n > 1 && n <= 4 && ours[words[1]] && finished[words[n-1]]
}

var finished = wordSet("done finished fixed")

// waits reports whether words say what is to be waited for.
func waits(words []string) bool {
	words = unled(words)
	return len(words) > 1 && waiting[words[0]] && till[words[1]]
}

// beginsWith returns how many of some words are one of several ways to say something, the longest.
func beginsWith(words []string, ways [][]string) (n int) {
	for _, w := range ways {
		if len(w) > n && len(words) >= len(w) && slices.Equal(words[:len(w)], w) {
			n = len(w)
		}
	}
	return n
}

// consents reports whether what some words say depends on somebody's consent: "with Kim's approval",
// "after review".
func consents(words []string) bool {
	for i, w := range words {
		if !consent[w] && !scrutiny[w] {
			continue
		}
		for j := max(0, i-4); j < i; j++ {
			if following[words[j]] || consent[w] && (under[words[j]] || j == 0 && words[j] == "on") {
				return true
			}
		}
	}
	return false
}

// attributes reports whether a clause says whose words the next one is: "Kim recommends",
// "according to the bot".
func attributes(words []string) bool {
	words = unled(words)
	n := len(words)
	if n > 2 && (words[n-1] == "me" || words[n-1] == "us" || words[n-1] == "mich" || words[n-1] == "uns") {
		n--
	}
	return n > 1 && n <= 6 && !slices.Contains(words, "i") && (sources[words[0]] || opinions[words[n-1]] || reporting[words[n-1]])
}

// conditional reports whether the rest of the sentence says when it holds what was said
// before, or what holds instead.
func conditional(rest string) bool {
	for n, c := range clausesOf(rest[:endOf(rest)]) {
		words := wordsOf(c.text)
		if consents(words) {
			return true
		}
		for i, w := range words {
			before := w == "before" && (n == 0 || i > 0) && i+1 < len(words) && (acting[words[i+1]] || doesFirst(words[i+1:]))
			if conditions[w] && !before && !tellsWhen(words[:i], words[i:]) || dependsAt(words[i:]) || supposes(words[i:]) {
				return true
			}
		}
	}
	return false
}

// supposes reports whether words begin with an if or a when that is another word in another language,
// or before what was just done: a Dutch "als", and "appena", but for "il commit appena fatto".
func supposes(words []string) bool {
	if len(words) < 2 {
		return false
	}
	return words[0] == "als" && ifDutch[words[1]] || words[0] == "appena" && !justDone().MatchString(words[1])
}

var justDone = text.Pattern(`(?:[aiu]t|[rs]s|tt|st|rt)[oaei]$`)

// dependsAt reports whether words begin with a condition of several, but for "as soon as possible".
func dependsAt(words []string) bool {
	n := beginsWith(words, whenWays)
	if n == 0 || n == len(words) {
		return false
	}
	return words[n] != "possible" && !(words[n] == "you" && n+1 < len(words) && (words[n+1] == "can" || words[n+1] == "could"))
}

// tellsWhen reports whether words before a condition have somebody told of what it says: "and let me
// know when it is done", "and tell Kim when it's done".
func tellsWhen(words, condition []string) bool {
	n := len(words)
	if hasAny(words, informing) && finishes(condition) {
		return true
	}
	return n > 2 && words[n-1] == "know" && words[n-3] == "let" || n > 1 && (words[n-1] == "me" || words[n-1] == "us") && informing[words[n-2]]
}

// waitsBehind reports whether what follows, up to the end of the next sentence, has somebody asked before,
// or is a time: "but ask Kim first", "but not yet", "but only tomorrow".
func waitsBehind(after string) bool {
	next := behindSentence(after)
	for _, but := range behindBut().Split(inBrackets().ReplaceAllString(after[:endOf(after)], " "), -1)[1:] {
		if but = clausesOf(but)[0].text; notNow(unled(wordsOf(but))) || isDeferral(but) {
			return true
		}
	}
	if sentence := next[:endOf(next)]; isDeferral(sentence) && !slices.ContainsFunc(clausesOf(sentence)[1:], asksElse) {
		return true // "Later."
	}
	return slices.ContainsFunc(slices.Concat(clausesOf(after[:endOf(after)]), clausesOf(next[:endOf(next)])), func(c clause) bool { return waitsIn(wordsOf(c.text)) })
}

// waitsIn reports whether a clause behind an order says that a time will do for it, has somebody asked before, or has us wait.
func waitsIn(words []string) bool {
	if suffices(words) {
		return true
	}
	for i := range words {
		rest := unled(words[i:])
		if i > 0 && (beforehand[words[i-1]] && consulting[words[i]] || words[i-1] == "to" && waiting[words[i]] && !slices.ContainsFunc(words[:i], spares)) {
			return true // "first ask Kim", "Kim asked to wait"
		}
		if i > 0 && against[words[i-1]] && len(rest) > 2 && rest[0] == "let" && rest[1] == "me" && rest[2] != "know" {
			return true // "but let me see it"
		}
		if (i == 0 || against[words[i-1]]) && len(rest) > 1 && consulting[rest[0]] && (beforehand[words[i]] || beforehand[rest[len(rest)-1]] || beforehand[rest[1]]) {
			return true
		}
	}
	return false
}

// spares reports whether a word has somebody not wait: "so that nobody has to wait".
func spares(w string) bool {
	return negating[w] || strings.HasSuffix(w, "n't") || w == "dont" || w == "no" || w == "nobody" || w == "having" || w == "people"
}

// suffices reports whether a clause says that a time will do: "next week is fine", and not "the demo on Friday was great".
func suffices(words []string) bool {
	for n := len(words); n > 0 && agreeing[words[n-1]]; n-- {
		words = words[:n-1]
	}
	at := slices.IndexFunc(words, func(w string) bool { return dating[w] })
	return len(words) > 1 && len(words) <= longestDelay && at >= 0 && sufficing[words[len(words)-1]] && !slices.ContainsFunc(words[:at], func(w string) bool { return !beforeTime[w] })
}

// agreeing say for whom it will do, beforeTime stand before the time.
var (
	agreeing   = wordSet("too also with by for me us then")
	beforeTime = wordSet("by on at until till in any next this the end of some early late mid sometime bis am ende der die den das dem nächste nächsten nächster kommende la le el les los il lo a de del di da der van het een volgende próxima próximo prossima prochaine")
)

// sufficing are words by which a time is said to do.
var sufficing = wordSet("fine ok okay good great perfect enough works sufficient alright suffices early better reicht genügt passt suffit basta")

// asksElse reports whether a clause has something told, of which the time before it is: "at 5pm, remind me".
func asksElse(c clause) bool {
	words := unled(wordsOf(c.text))
	return len(words) > 0 && (explaining[words[0]] || conveying[words[0]])
}

// notNow reports whether words behind a "but" deny an order for now, have us wait, or are a time.
func notNow(words []string) bool {
	n := len(words)
	if n == 0 {
		return false
	}
	waits := waiting[words[0]] || n > 1 && words[0] == "let's" && waiting[words[1]]
	denies := negating[words[0]] && (n == 1 || notYet[words[1]]) || n == 2 && notYet[words[0]] && (negating[words[1]] || words[1] == "no")
	return waits || denies || n <= longestDelay && hasAny(words, dating) && !hasAny(words, being) && !tells(words)
}

// behindBut is what is said against what was said before it, longestDelay the most words of one that says when.
var behindBut = text.Pattern(`(?i)(?:^|[ \t,;–—-])(?:but|only|just|though|although|however|perhaps|maybe|aber|jedoch|allerdings|vielleicht|mais|pero|aunque|quizás|ma|forse|mas|talvez|maar|misschien)[ \t]`)

const (
	longestDelay = 6
	mostPreface  = 4 // and of a clause that says no more than when
)

// clockForm is a time of the day, or a number that may be one: "5pm", "17:00", "5".
var (
	hourForm = text.Pattern(`(?i)^@?(?:[0-9]{1,2}(?:[:.h][0-9]{0,2})?(?:am|pm|a\.m|p\.m|uhr|ish)?|[012][0-9][0-5][0-9])[.,;!?)]*$`)
	hourEnd  = text.Pattern(`:|(?:m|uhr|ish)$|^[0-9]+h[0-9]*$`)
	// dayForm is a day in numbers, spanForm a time that passes, or a quarter of a year.
	dayForm  = text.Pattern(`(?i)^(?:[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{1,2}/[0-9]{1,2}(?:/[0-9]{2,4})?|[0-3][0-9]\.(?:[01]?[0-9](?:\.[0-9]{0,4})?)?|[0-9]{1,2}\.[0-9]{1,2}\.(?:[0-9]{2,4})?|[0-9]{1,2}(?:st|nd|rd|th))[.,;!?)]*$`)
	spanForm = text.Pattern(`^[0-9]+(?:s|m|h|d|w|min|mins|hr|hrs|sec|secs)$|^q[1-4]$`)
)

// notYet are the words of a denial that is one for now.
var notYet = wordSet("yet now today right before until till so immediately jetzt heute sofort gleich vor bevor encore maintenant todavía aún ahora ancora adesso ainda agora nu nog")

// doesFirst reports whether words behind "before" are of what comes next, as "leaving" is:
// not for another time, as "boarding time" and "leaving on Friday" are, nor what the
// sentence is of ("before leaving is the rule").
func doesFirst(words []string) bool {
	if !isGerund(words[0]) {
		return false
	}
	for i, w := range words {
		if i > 0 && (joining[w] || w == "so" || w == "because") {
			break
		}
		if dating[w] || being[w] || w == "every" || w == "each" || i > 0 && valuing[w] || i == 1 && timely[w] {
			return false
		}
	}
	return true
}

// valuing are the verbs of what a rule is good for.
var valuing = wordSet("helps saves makes keeps costs prevents avoids gives takes gets")

// timely are those that make a time of the word before them.
var timely = wordSet("time times season hours")
