package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"time"
)

var notOfAnID = regexp.MustCompile(`[^0-9A-Za-z.-]+`)

type object map[string]any

// bill is what a program is made of, read from the program itself, in SPDX 2.3.
func (r *release) bill(name, built string, exe []byte) ([]byte, error) {
	info, err := buildinfo.ReadFile(built)
	if err != nil {
		return nil, err
	}
	if info.Path != program {
		return nil, errors.New("it is another program")
	}
	const nobody, document = "NOASSERTION", "SPDXRef-DOCUMENT"
	sum := sha256.Sum256(exe)
	var packages, relations []object
	from, relation := document, "DESCRIBES"
	add := func(id, path, version string, more object) {
		p := object{"SPDXID": "SPDXRef-" + notOfAnID.ReplaceAllString(id, "-"), "name": path, "versionInfo": version, "filesAnalyzed": false,
			"downloadLocation": nobody, "licenseConcluded": nobody, "licenseDeclared": nobody, "copyrightText": nobody,
			"externalRefs": []object{{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": "pkg:golang/" + path + "@" + version}}}
		maps.Copy(p, more)
		packages = append(packages, p)
		relations = append(relations, object{"spdxElementId": from, "relationshipType": relation, "relatedSpdxElement": p["SPDXID"]})
	}
	add("program", info.Main.Path, r.version, object{"licenseDeclared": "Apache-2.0",
		"checksums": []object{{"algorithm": "SHA256", "checksumValue": hex.EncodeToString(sum[:])}}})
	from, relation = "SPDXRef-program", "DEPENDS_ON"
	add("stdlib", "stdlib", info.GoVersion, nil)
	for _, m := range info.Deps {
		if m.Replace != nil {
			return nil, fmt.Errorf("%s is replaced", m.Path)
		}
		add("module-"+m.Path, m.Path, m.Version, object{"downloadLocation": "https://proxy.golang.org/" + m.Path + "/@v/" + m.Version + ".zip", "comment": "go.sum " + m.Sum})
	}
	out, err := json.MarshalIndent(object{"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": document, "name": name,
		"documentNamespace": "https://" + info.Main.Path + "/spdx/" + name + "-" + hex.EncodeToString(sum[:8]),
		"creationInfo":      object{"created": r.at.Format(time.RFC3339), "creators": []string{"Tool: writ-release"}},
		"packages":          packages, "relationships": relations,
	}, "", "  ")
	return append(out, '\n'), err
}
