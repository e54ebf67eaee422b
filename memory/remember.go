package memory

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/quote"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/words"
)

// thingType is the type of what remember names and nobody gave a type.
const thingType = "thing"

// About takes apart what remember and recall are told a fact is about, as
// "Anna: phone": whom or what, and which question. himself says that the
// session's person is meant.
func About(about string) (subject, predicate string, himself bool) {
	subject, asked, _ := strings.Cut(about, ":")
	subject = strings.TrimSpace(subject)
	ws := words.Of(plain(subject))
	if len(ws) > 1 && in("article", ws[0]) {
		ws = ws[1:]
	}
	if len(ws) == 3 && ws[0] == "user" && ws[1] == "s" && ws[2] == "name" { // the user's name
		ws, asked = ws[:1], cmp.Or(strings.TrimSpace(asked), "name")
	}
	himself = in("speaker", strings.ToLower(subject)) || len(ws) == 1 && in("user", ws[0])
	return subject, predicateForm(asked), himself
}

// remember keeps one fact: what was said of it is recorded as evidence, and where
// it is said what it is about, the claim is filed.
func (j *judge) remember() *refusal {
	raw, value, source := j.texts["text"], strictjson.Quote(j.texts["text"]), ""
	sets := map[string][]byte{} // what only Writ sets
	if len(j.c.Captured) > 0 {
		c := &j.c.Captured[0]
		raw, value, source = RedactText(c.Text, j.c.Secrets), Redact(c.Value, j.c.Secrets), c.Source
		if raw == "" || len(raw) > maxRaw || strictjson.Check(value, payloadLimits) != nil {
			return refuse("", writ.MemoryMissing, "evidence that can be kept")
		}
		sets["raw_payload"] = strictjson.Quote(raw)
	}
	sets["value"] = value
	subject, predicate, himself := About(j.texts["about"])
	name := subject
	if himself {
		name = "user"
	}
	if name != "" {
		sets["name"] = strictjson.Quote(name)
	}
	for _, f := range []string{"raw_payload", "value", "name"} {
		// Where it is there, the record of a decision is read again, and it must be the same.
		if had, given := j.m[f]; given && string(had) != string(sets[f]) {
			return refuse("", writ.SchemaUnknownField, j.t.fieldsInstead(""))
		}
	}
	maps.Copy(j.m, sets)
	if name != "" && normName(name) == "" {
		return refuse("/about", writ.SchemaInvalid, "a name with a letter or digit")
	}
	obs, _, r := j.observe("", "remember/"+j.e.decision(), raw, "", nil, j.now())
	if r != nil {
		return r
	}
	ob := j.d.observations.get(obs)
	j.kept = &Kept{ID: obs, Trust: trustOf(ob), Quote: excerptOf(raw, "", words.Content(j.texts["text"])).within(maxShown)}
	j.kept.Why, j.kept.own = why(ob, source), ob.Class == ClassAgentInference && ob.Status == Ingested
	if j.c.Unlooked && j.kept.own {
		j.kept.Why = "it is your note: nothing that was looked at says so, and for its size not all that this session saw was"
	}
	p, replaced, r := j.fact(subject, predicate, himself, obs)
	if r != nil {
		return r
	}
	if j.texts["replaces"] != "" && replaced == nil {
		j.advise("replaces.nothing", "")
		j.kept.Why += "; it replaces nothing: replaces takes the id of a fact about the same"
	}
	if p.Subject == "" {
		return nil
	}
	p.Text, p.Literal = j.texts["text"], string(value)
	return j.replace(p, replaced, obs)
}

// fact is the claim to be filed, without a subject where it is about nothing, and what it replaces.
func (j *judge) fact(subject, predicate string, himself bool, obs string) (p, replaced *Proposition, r *refusal) {
	p, replaced = j.claim(nil), j.d.propositions.get(j.texts["replaces"])
	switch {
	case subject != "":
		en, r := j.meant(subject, himself, obs)
		if r != nil {
			return nil, nil, r
		}
		p.Subject, p.About, p.Predicate = en, []string{en}, cmp.Or(predicate, noteForm)
		p.Predicate = cmp.Or(j.d.aliases.of(predicateKey(p.Predicate)), p.Predicate)
		if replaced != nil && j.d.resolve(replaced.Subject) != en {
			replaced = nil
		}
	case replaced != nil && replaced.Subject != "": // about what that is about
		p.Subject, p.About, p.Predicate = j.d.resolve(replaced.Subject), slices.Clone(replaced.About), noteForm
	default:
		replaced = nil
	}
	return p, replaced, nil
}

// replace files a claim, in the place of another where there is one.
func (j *judge) replace(p, old *Proposition, obs string) *refusal {
	if old != nil && old.Predicate != noteForm && old.Slot != "" {
		p.Predicate, p.Slot, p.Quals = old.Predicate, old.Slot, old.Quals // what corrects an answer answers the same question
	}
	ids := []string{obs}
	id, fresh, r := j.file(p, ids)
	if r != nil {
		return r
	}
	if !fresh {
		j.d.attach(id, ids, "", false)
		j.d.effect("evidence.attached", id)
	}
	if old != nil && old.ID != id && j.d.links.of(join(string(Supersedes), id, old.ID)) == "" {
		j.d.touch(old.Slot, old.ID)
		j.d.add(Op{Edge: &Edge{ID: j.d.mint("edge"), Type: Supersedes, From: id, To: old.ID, RecordedAt: j.e.At, Decision: j.e.decision()}})
	}
	st, q := j.d.standing(id, 0), j.d.observations.get(obs)
	if j.kept.ID, j.kept.Trust = id, st.Status; st.Level == 0 && q.Level > 0 {
		j.advise("proposition.not_borne_out", id)
		j.kept.Why += "; " + unborne(p, q)
	}
	if old != nil && old.ID != id && j.d.standing(old.ID, 0).Status == Established {
		j.kept.Why += "; " + old.ID + " is shown beside it, as what you say this corrects"
	}
	return nil
}

// meant is the entity of that name, made where there is none. Of several of one
// name none is meant.
func (j *judge) meant(name string, himself bool, obs string) (string, *refusal) {
	if himself {
		if id := j.d.Person(j.c.Principal); id != "" {
			return id, nil
		}
	} else {
		var same []string
		for _, id := range j.s.ix.named.of(normName(name)) {
			if first := &j.d.entities.get(id).Names[0]; first.Gone || !sameName(first.Text, name) {
				continue
			}
			if id = j.d.resolve(id); !j.d.entities.get(id).Gone {
				same = addOnce(same, id)
			}
		}
		slices.SortFunc(same, compareID)
		if len(same) > 0 {
			return same[0], nil
		}
	}
	if r := j.crowded(); r != nil {
		return "", r
	}
	typ := thingType
	if himself {
		typ = selfType
	}
	return j.newEntity(typ, Name{Observation: obs}), nil
}

// unborne says what the quote of a claim is worth that does not bear it out, which is not what the
// claim is worth.
func unborne(p *Proposition, quote *Observation) string {
	out := "its quote " + quote.ID + " is " + string(trustOf(quote)) + " by itself, and "
	if p.Predicate == noteForm {
		return out + "names nobody it could be about"
	}
	return out + "does not answer " + strings.ReplaceAll(p.Predicate, "_", " ") + ": one sentence or record must name whom it is about, hold that word and say the value"
}

// Alone says of an unverified claim what remember said of its quote, which may be worth more by
// itself; "" where it is not.
func (r *Reader) Alone(v *View) string {
	for _, id := range v.Observation {
		if o := r.State.observations.get(id); v.Status == Unverified && o != nil && trustOf(o) != Unverified && o.Status == Ingested {
			return unborne(r.State.propositions.get(v.ID), o)
		}
	}
	return ""
}

// trustOf is what a quote is worth by itself.
func trustOf(o *Observation) Status {
	switch {
	case o.Status == Erased:
		return Gone
	case o.Status != Ingested || o.Level == 0:
		return Unverified
	case o.Level == 1:
		return Reported
	}
	return Established
}

// why says in one line what stands behind a quote.
func why(o *Observation, source string) string {
	switch {
	case o.Status == Quarantined:
		return "the content screen holds it back"
	case o.Class == ClassDirectUser:
		return "the user said so"
	case o.Class == ClassAgentInference:
		return "nothing this session saw says so: it is your note"
	case o.Level >= 2:
		return source + " returned it"
	}
	return source + " says so, and anybody may have written that"
}

// maxShown is how many bytes of a quote are shown.
const maxShown = 400

// shown is a text cut to so many bytes.
func shown(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := limit - len("…")
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + "…"
}

// Speaks reports whether a word is of who speaks, as a proposal or a sentence
// names him.
func Speaks(word string) bool {
	return in("speaker", word) || in("self", word) || in("user", word)
}

// Sought is a fact as it is looked for in what a session saw.
func Sought(fact, about string) *quote.Fact {
	subject, predicate, himself := About(about)
	f := &quote.Fact{Text: fact, Predicate: words.Of(strings.ReplaceAll(predicate, "_", " ")), Speaks: Speaks, Denies: Denies}
	if !himself {
		f.Subject = words.Of(subject)
	}
	return f
}
