package memory

import (
	"slices"
	"strconv"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// read checks a payload against its tool's fields and takes it apart: first
// the schema, then, if that holds, whether everything that must name evidence
// does.
func (j *judge) read(payload []byte, fields []field) *refusal {
	j.m, j.texts, j.lists = map[string][]byte{}, map[string]string{}, map[string][]string{}
	j.times = map[string]Instant{}
	ms, _ := strictjson.Members(payload)
	for _, m := range ms {
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == m.Name })
		switch {
		case i < 0:
			return refuse("", writ.SchemaUnknownField, j.t.fieldsInstead(m.Name))
		case strictjson.KindOf(m.Value) == strictjson.Null && !fields[i].required:
			// It is not given.
		default:
			j.m[m.Name] = m.Value
		}
	}
	for _, sourced := range []bool{false, true} {
		for i := range fields {
			if f := &fields[i]; f.sourced == sourced {
				if r := j.readField(f); r != nil {
					return r
				}
			}
		}
	}
	return nil
}

// readField reads the member of a field, if it is there.
func (j *judge) readField(f *field) *refusal {
	raw, given := j.m[f.name]
	switch {
	case !given && f.required && f.sourced:
		return refuse(member(f.name), writ.MemoryMissing, "a recorded observation: "+f.about)
	case !given && f.required:
		return refuse(member(f.name), writ.SchemaMissingField, strings.TrimSuffix("`"+member(f.name)+"` is missing: "+f.about, "."))
	case !given:
		return nil
	}
	need := j.field(f, raw)
	if need == "" {
		return nil
	}
	if !f.required && string(raw) == `""` {
		need += ", or nothing: leave it out"
	}
	reason := writ.SchemaInvalid
	if f.sourced {
		reason = writ.MemoryMissing
	}
	return refuse(member(f.name), reason, need)
}

// mistaken are names by which agents call a field that has another, and so can be
// repeated; any other name is somebody's own word.
var mistaken = strings.Fields(`content contents fact facts memory note notes statement message body data information value
	observation observations subject entity topic person name key title user user_id category tags tag importance confidence
	metadata type source date time id ids memory_id update supersedes query q limit k top_k filter`)

// fieldsInstead says of a field that a tool does not have which it has.
func (t *tool) fieldsInstead(name string) string {
	if name = strings.ToLower(name); slices.Contains(mistaken, name) {
		name = "`" + name + "`"
	} else {
		name = "something it was given"
	}
	var needs, takes []string
	for _, f := range t.fields {
		switch {
		case f.required:
			needs = append(needs, "`"+f.name+"`")
		case !f.hidden:
			takes = append(takes, "`"+f.name+"`")
		}
	}
	out := name + " is no field of " + t.name
	if len(needs) > 0 {
		out += ": it needs " + strings.Join(needs, ", ")
	}
	if len(takes) > 0 {
		out += "; it takes " + strings.Join(takes, ", ")
	}
	return out
}

// field reads one field and returns what it would have to be, "" if it is.
func (j *judge) field(f *field, raw []byte) (need string) {
	text, ok := strictjson.Text(raw)
	switch f.kind {
	case kindText:
		t := j.tidied(text)
		if ok, need = ok && runes(t) >= f.min && runes(t) <= f.max, f.long()+" characters"; ok && t != text {
			j.transform("text_tidied", member(f.name))
			j.set(f.name, strictjson.Quote(t))
		}
		text = t
	case kindRaw:
		ok, need = ok && len(text) >= f.min && len(text) <= f.max, f.long()+" bytes"
	case kindClient:
		ok, need = clientID(text) && !isID("obs", text), "an id of your own: 1 to 128 letters, digits, . _ : or -, and not of the form obs_12"
	case kindID:
		ok, need = isID(f.enum[0], text), "an id of the form "+f.enum[0]+"_12"
	case kindWord:
		ok, need = ok && slices.Contains(f.enum, text), "one of the words of the tool's schema"
	case kindSlug:
		ok, need = slug(text), "a lower-case word of letters, digits, _ and -"
	case kindTime:
		j.times[f.name], ok = parseTime(text)
		need = "a time of RFC 3339, such as 2026-11-21T15:00:00Z"
	default:
		return j.structured(f, raw)
	}
	if !ok {
		return need
	}
	j.texts[f.name] = text
	return ""
}

func (f *field) long() string {
	return "a text of " + strconv.Itoa(f.min) + " to " + strconv.Itoa(f.max)
}

// structured is field of what is no text.
func (j *judge) structured(f *field, raw []byte) (need string) {
	switch f.kind {
	case kindIDs, kindObs, kindTexts:
		return j.listed(f, raw)
	case kindOutcomes:
		ms, ok := strictjson.Members(raw)
		if !ok || len(ms) == 0 || len(ms) > 5 {
			return "an object of 1 to 5 propositions, each with the outcome it predicts"
		}
		for _, m := range ms {
			if t, ok := strictjson.Text(m.Value); !ok || !slug(t) || t == "inconclusive" || !isID("prop", m.Name) {
				return "for each proposition a lower-case word, and not inconclusive"
			}
		}
	case kindForm:
		// A value has as little that nobody sees as the claim's text.
		tidied, err := strictjson.Canonical(mapTexts(raw, j.tidied, nil))
		if err != nil {
			return formNeed
		}
		if string(tidied) != string(raw) {
			j.transform("text_tidied", member(f.name))
			j.set(f.name, tidied)
		}
		return form(tidied)
	}
	switch k := strictjson.KindOf(raw); {
	case f.kind == kindObject && k != strictjson.Object:
		return "an object"
	case f.kind == kindScalar && k != strictjson.String && k != strictjson.Number && k != strictjson.Bool:
		return "a text, number or boolean"
	case f.kind == kindBool && k != strictjson.Bool:
		return "true or false"
	}
	return ""
}

// listed reads a list of ids, or of further names. One that stands twice is left out.
func (j *judge) listed(f *field, raw []byte) string {
	need, word := "a list of "+strconv.Itoa(f.min)+" to "+strconv.Itoa(f.max)+" ids", "duplicates_removed"
	each := need
	if f.kind == kindTexts {
		need, word = "a list of at most "+strconv.Itoa(f.max)+" texts", "text_tidied"
		each = "texts of 1 to " + strconv.Itoa(maxName) + " characters"
	}
	es, ok := strictjson.Elements(raw)
	if !ok || len(es) < f.min || len(es) > f.max {
		return need
	}
	var out []string
	var kept [][]byte
	changed := false
	for _, e := range es {
		said, ok := strictjson.Text(e)
		t := said
		switch f.kind {
		case kindTexts:
			t = j.tidied(said)
			ok = ok && runes(t) >= 1 && runes(t) <= maxName
		case kindIDs:
			ok = ok && isID(f.enum[0], t)
		case kindObs:
			ok = ok && clientID(t)
		}
		if !ok {
			return each
		}
		again := slices.Contains(out, t)
		if changed = changed || again || t != said; !again {
			out, kept = append(out, t), append(kept, strictjson.Quote(t))
		}
	}
	if changed {
		j.transform(word, member(f.name))
		j.set(f.name, array(kept))
	}
	j.lists[f.name] = out
	return ""
}

const formNeed = "{subject: an entity's id, predicate: a word, object: {entity: an id} or {literal: a text, number or boolean}, qualifiers?: an object}"

// form checks a structured form and returns what it would have to be.
func form(raw []byte) string {
	v := strictjson.Of(raw)
	subject, _ := v.Get("subject").Text()
	predicate, _ := v.Get("predicate").Text()
	qualifiers, members := v.Get("qualifiers"), 3
	if qualifiers.Exists() {
		members++
	}
	if v.Len() != members || !isID("ent", subject) || !slug(predicate) || !objectForm(v.Get("object")) ||
		qualifiers.Exists() && (qualifiers.Kind() != strictjson.Object || len(qualifiers.Raw()) > 2000) {
		return formNeed
	}
	return ""
}

func objectForm(v strictjson.Value) bool {
	entity, _ := v.Get("entity").Text()
	literal := v.Get("literal")
	text, _ := literal.Text()
	return v.Len() == 1 && (isID("ent", entity) || text != "" && runes(text) <= maxText ||
		literal.Kind() == strictjson.Number || literal.Kind() == strictjson.Bool)
}

// cites resolves the observations that fields name, by the caller's ids or ours, to
// ours. Each must be there, whole and fit to support something.
func (j *judge) cites(fields []field) *refusal {
	for _, f := range fields {
		if f.kind != kindObs {
			continue
		}
		var out []string
		for i, id := range j.lists[f.name] {
			at := strictjson.Pointer([]string{f.name, strconv.Itoa(i)})
			ob := j.observation(id)
			switch {
			case ob == nil:
				return refuse(at, writ.MemoryUnknown, "an observation of this memory: record it first")
			case ob.Status == Erased:
				return refuse(at, writ.MemoryErased, "an observation that was not erased")
			case ob.Status != Ingested:
				return refuse(at, writ.MemoryQuarantined, "an observation that is neither quarantined nor distrusted")
			}
			out = addOnce(out, ob.ID)
		}
		j.lists[f.name] = out
	}
	return nil
}

// observation finds one by the caller's own id, or by ours.
func (j *judge) observation(id string) *Observation {
	if isID("obs", id) {
		return j.d.observations.get(id)
	}
	return j.d.observations.get(j.d.clients.of(clientKey(j.c.Principal, j.c.Session, id)))
}
