package main

import (
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/memory"
)

// rules says the rules of belief in words. A test holds that none is left out.
var rules = map[memory.Rule]string{
	memory.RuleEstablished: "the user or a trusted tool says so, and no word that counts as much says otherwise",
	memory.RuleContested:   "a later word of a lower level says otherwise",
	memory.RuleReported:    "only those say so whom anybody can write to",
	memory.RuleUnverified:  "nothing that was seen says so: the agent does",
	memory.RuleReplaced:    "a later word of its level or a higher one says otherwise",
	memory.RuleErased:      "its words were erased",
}

func ruleWords(r memory.Rule) string {
	if w, ok := rules[r]; ok {
		return w + " (" + string(r) + ")"
	}
	return cli.OneLine(string(r), 80)
}

// abstentions says why there is no answer.
var abstentions = map[memory.Abstention]string{
	memory.NoAbstention:         "it may be used as an answer",
	memory.InsufficientEvidence: "it is no answer: too little supports it",
	memory.IsContested:          "it is no answer: it is contested",
	memory.WasReplaced:          "it is no answer: another value took its place",
	memory.WasErased:            "it is no answer: it was erased",
	memory.NothingKnown:         "nothing is known",
}
