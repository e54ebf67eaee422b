package invariants

import (
	"fmt"
	"slices"
	"strings"
)

const preamble = `# Invariants

What must always hold. Each is numbered once and keeps its number. This file is made by ` + "`make invariants`" + ` from
` + "`eval/invariants/table.yaml`" + `; ` + "`make check`" + ` makes it again and compares.

What the seeds demand is shown by commands: ` + "`writ-eval invariants`" + ` runs each of them and looks at each field named here.
Each row also names the functions that enforce it and tests that fail when it is broken; ` + "`docs_test.go`" + ` holds that they
exist. "Less" says, in the open, what is claimed less than it may seem.
`

// Markdown is INVARIANTS.md.
func (t *Table) Markdown() []byte {
	var b strings.Builder
	b.WriteString(preamble)
	group := ""
	for _, v := range t.Invariants {
		if v.Group != group {
			group = v.Group
			fmt.Fprintf(&b, "\n## %s\n\n", group)
		}
		head := fmt.Sprintf("%d. ", v.Number.N)
		text := v.Statement
		if v.ID != "" {
			text = "**" + v.ID + ".** " + text
		}
		indent := strings.Repeat(" ", len(head))
		var tail []string
		if len(v.Tests) > 0 {
			tail = append(tail, "Held by "+list(v.Tests)+".")
		}
		if v.ID == "" {
			fill(&b, head, indent, strings.Join(append([]string{text}, tail...), " "))
			continue
		}
		fill(&b, head, indent, text)
		if v.But != "" {
			fill(&b, indent+"- ", indent+"  ", "Less: "+v.But)
		}
		fill(&b, indent+"- ", indent+"  ", "Enforced by "+list(v.Enforced)+".")
		for i := 0; i < len(v.Evidence); {
			of, fields := v.Evidence[i].Of, []string{}
			for ; i < len(v.Evidence) && v.Evidence[i].Of == of; i++ {
				fields = append(fields, "`"+v.Evidence[i].Field+"` "+v.Evidence[i].must())
			}
			fill(&b, indent+"- ", indent+"  ", "Shown by "+of+": "+strings.Join(fields, ", ")+".")
		}
		if len(tail) > 0 {
			fill(&b, indent+"- ", indent+"  ", tail[0])
		}
	}
	b.WriteString("\n## The commands\n\nDIR is a new directory, the same for all; what stands in <> is what that command printed in that field.\n\n")
	for _, c := range t.Commands {
		end := ""
		if c.Exit.N != 0 {
			end = fmt.Sprintf(" It exits with %d.", c.Exit.N)
		}
		fmt.Fprintf(&b, "- %s:%s\n\n      %s\n\n", c.Name, end, c)
	}
	return []byte(strings.TrimRight(b.String(), "\n") + "\n")
}

func list(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = "`" + n + "`"
		if name, where, ok := strings.Cut(n, " "); ok {
			quoted[i] = "`" + name + "` (`" + strings.Trim(where, "()") + "`)"
			if where == "(.)" {
				quoted[i] = "`" + name + "` (the root package)"
			}
		}
	}
	if len(quoted) > 1 {
		last := len(quoted) - 1
		quoted = append(slices.Clone(quoted[:last-1]), quoted[last-1]+" and "+quoted[last])
	}
	return strings.Join(quoted, ", ")
}

// fill writes a paragraph in lines of at most 120 columns.
func fill(b *strings.Builder, head, indent, text string) {
	const width = 120
	line, used := head, false
	for w := range strings.FieldsSeq(text) {
		if used && len(line)+1+len(w) > width {
			b.WriteString(line + "\n")
			line, used = indent, false
		}
		if used {
			line += " "
		}
		line, used = line+w, true
	}
	b.WriteString(line + "\n")
}
