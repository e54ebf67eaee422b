package clients

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// maxTOML bounds what is read as TOML, and so how deep its dotted keys nest; the
// parser bounds brackets itself.
const maxTOML = 256 << 10

// pair is a key with a value, in a table of a server.
type pair struct {
	key         []string // in the server's table
	whole, from int      // offsets of the key and of the value
	to          int      // of the end of both
}

func (l Layout) readTOML(b []byte) (all []Server, err error) {
	doc, err := meaningTOML(b) // which knows what stands twice
	if err != nil {
		return nil, err
	}
	top, ok := doc[l.Key]
	if !ok {
		return nil, nil
	}
	tables, ok := top.(map[string]any)
	if !ok {
		return nil, &Error{Why: l.Key + " is no table"}
	}
	order, pairs, env, err := l.pairs(b)
	if err != nil {
		return nil, err
	}
	for _, name := range order {
		s := l.serverTOML(b, name, tables[name], pairs[name])
		for _, h := range env[name] {
			s.env, s.masked = append(s.env, h), append(s.masked, h.span)
		}
		all = append(all, s)
	}
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		if !slices.Contains(order, name) {
			all = append(all, Server{Name: name, Left: "its entry has an unknown shape"})
		}
	}
	return all, nil
}

// pairs are what stands in each server's table, the servers in the file's order, and the
// texts of each one's environment.
func (l Layout) pairs(b []byte) (order []string, of map[string][]pair, env map[string][]hole, err error) {
	of, env = map[string][]pair{}, map[string][]hole{}
	var p unstable.Parser
	p.Reset(b)
	var table []string
	array := false
	for p.NextExpression() {
		e := p.Expression()
		var path []string
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table, array = keyOf(e), e.Kind == unstable.ArrayTable
			path = table
		case unstable.KeyValue:
			path = slices.Concat(table, keyOf(e))
		}
		if len(path) < 2 || path[0] != l.Key || array {
			continue
		}
		name := path[1]
		if !slices.Contains(order, name) {
			order = append(order, name)
		}
		if e.Kind != unstable.KeyValue || len(path) < 3 {
			continue
		}
		for _, t := range textsAt(e.Value(), path[2:]) {
			if len(t.key) == 2 && t.key[0] == "env" {
				env[name] = append(env[name], hole{span{t.from, t.to}, "env/" + t.key[1]})
			}
		}
		from, to := int(e.Raw.Offset), int(e.Raw.Offset+e.Raw.Length)
		if value, ok := valueIn(b[from:to]); ok {
			of[name] = append(of[name], pair{key: path[2:], whole: from, from: from + value, to: to})
		}
	}
	if err := p.Error(); err != nil {
		return nil, nil, nil, &Error{Why: "not TOML"}
	}
	return order, of, env, nil
}

// textsAt are the texts of a value, of one that is a table in a line those in it, each
// under the whole of its key.
func textsAt(v *unstable.Node, key []string) (all []pair) {
	switch v.Kind {
	case unstable.String:
		return []pair{{key: key, from: int(v.Raw.Offset), to: int(v.Raw.Offset + v.Raw.Length)}}
	case unstable.InlineTable:
		for it := v.Children(); it.Next(); {
			all = append(all, textsAt(it.Node().Value(), slices.Concat(key, keyOf(it.Node())))...)
		}
	}
	return all
}

func keyOf(e *unstable.Node) (key []string) {
	for it := e.Key(); it.Next(); {
		key = append(key, string(it.Node().Data))
	}
	return key
}

// valueIn is where the value begins in `key = value`, of a key without quotes.
func valueIn(raw []byte) (int, bool) {
	i := strings.IndexByte(string(raw), '=')
	if i < 0 || strings.ContainsAny(string(raw[:i]), `"'`) {
		return 0, false
	}
	for i++; i < len(raw) && (raw[i] == ' ' || raw[i] == '\t'); i++ {
	}
	return i, i < len(raw)
}

func (l Layout) serverTOML(b []byte, name string, v any, pairs []pair) (s Server) {
	s.Name = name
	table, ok := v.(map[string]any)
	if !ok {
		s.leave("its entry has an unknown shape")
		return s
	}
	if table["url"] != nil {
		s.leave("it is a hosted server")
	}
	if table["enabled"] == false {
		s.leave("it is switched off")
	}
	if _, ok := table["command"].(string); !ok {
		s.leave("it has no command")
		return s
	}
	s.starts(l, table)
	if raw, has := table["env_vars"]; has {
		if s.Inherit, ok = textsIn(raw); !ok {
			s.leave("the variables it inherits have an unknown shape")
		}
	}
	find := func(key string) int {
		return slices.IndexFunc(pairs, func(p pair) bool { return len(p.key) == 1 && p.key[0] == key })
	}
	c := find("command")
	if c < 0 {
		s.leave("its entry has an unknown shape")
		return s
	}
	p := pairs[c]
	s.command = span{p.from, p.to}
	// The key as it stands, with what names its table, and as deep in the line.
	line := strings.LastIndexByte(string(b[:p.whole]), '\n') + 1
	indent := string(b[line:p.whole])
	key := strings.TrimRight(string(b[p.whole:p.from]), " \t=")
	s.insert = func(args []byte) []byte {
		return append([]byte(newline(b)+indent+strings.TrimSuffix(key, "command")+"args = "), args...)
	}
	if a := find("args"); a >= 0 {
		q := pairs[a]
		s.args = span{q.from, q.to}
		if q.whole > p.to && strings.Trim(string(b[p.to:q.whole]), " \t\r\n") == "" {
			s.cut = span{p.to, q.to}
		}
	} else if table["args"] != nil {
		s.leave("its arguments have an unknown shape")
	}
	return s
}

func meaningTOML(b []byte) (all map[string]any, err error) {
	if len(b) > maxTOML {
		return nil, &Error{Why: "the file is larger than 256 KiB"}
	}
	if err := toml.Unmarshal(b, &all); err != nil {
		if d, ok := errors.AsType[*toml.DecodeError](err); ok {
			row, _ := d.Position()
			return nil, &Error{Line: row, Why: "not TOML, or a name stands twice"}
		}
		return nil, &Error{Why: "not TOML"}
	}
	return all, nil
}
