package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// A table is schema.rs as it is read back. none is the type of a place that it doesn't know.
type table struct {
	types []map[string]row
	roots map[yaml.TypeMeta]int
}

type row struct {
	list bool
	keys []string
	to   int
}

const none = -1

var (
	typeLine  = regexp.MustCompile(`^    Type \{ fields: &\[$`)
	fieldLine = regexp.MustCompile(`^        Field \{ name: "(.*?)", list: (None|Some\(&\[(.*)\]\)), to: (None|Some\((\d+)\)) \},$`)
	rootLine  = regexp.MustCompile(`^    \("(.*)", "(.*)", (\d+)\),$`)
)

func readTable(text string) table {
	t := table{roots: map[yaml.TypeMeta]int{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if typeLine.MatchString(line) {
			t.types = append(t.types, map[string]row{})
		} else if m := fieldLine.FindStringSubmatch(line); m != nil {
			r := row{list: m[2] != "None", to: none}
			if m[3] != "" {
				for _, key := range strings.Split(m[3], ", ") {
					r.keys = append(r.keys, strings.Trim(key, `"`))
				}
			}
			if m[5] != "" {
				r.to, _ = strconv.Atoi(m[5])
			}
			t.types[len(t.types)-1][m[1]] = r
		} else if m := rootLine.FindStringSubmatch(line); m != nil {
			t.roots[yaml.TypeMeta{APIVersion: m[1], Kind: m[2]}], _ = strconv.Atoi(m[3])
		}
	}
	return t
}

// field answers as the Rust does.
func (t table) field(of int, name string) (row, bool) {
	if of == none {
		return row{}, false
	}
	if r, found := t.types[of][name]; found {
		return r, true
	}
	r, found := t.types[of][anyName]
	return r, found
}

// A pair is a place of the OpenAPI and the type that the table has for it. Equal pairs have equal futures, so paths of any
// length are covered by meeting each pair once.
type pair struct {
	id string
	of int
	// Whether a place that may hold anything must be known.
	strict bool
}

type comparison struct {
	table
	seen map[pair]bool
}

// verify walks the whole OpenAPI from every root, together with the table, and compares what a merge would ask.
func verify(text string) error {
	c := comparison{readTable(text), map[pair]bool{}}
	unmet := maps.Clone(c.roots)
	met := map[yaml.TypeMeta]bool{}
	for _, root := range roots() {
		name := root.APIVersion + " " + root.Kind
		if met[root.TypeMeta] {
			return fmt.Errorf("%s has two schemas", name)
		}
		met[root.TypeMeta] = true
		delete(unmet, root.TypeMeta)
		of, known := c.roots[root.TypeMeta]
		if !known {
			of = none
		}
		place := root.place()
		if !known && place.schema.Lookup("metadata", "name") != nil {
			return fmt.Errorf("%s can be in a kustomization", name)
		}
		if err := c.walk(name, place, of, known); err != nil {
			return err
		}
	}
	for root := range unmet {
		return fmt.Errorf("there is no %v", root)
	}
	return nil
}

func (c comparison) walk(path string, p place, of int, strict bool) error {
	if c.seen[pair{p.id, of, strict}] {
		return nil
	}
	c.seen[pair{p.id, of, strict}] = true
	names := p.names()
	if of != none {
		for name := range c.types[of] {
			if !slices.Contains(names, name) {
				return fmt.Errorf("%s has no field %s", path, name)
			}
		}
	}
	for _, name := range names {
		if err := c.field(path+"."+name, p.field(name), of, name, strict); err != nil {
			return err
		}
	}
	return nil
}

func (c comparison) field(path string, p place, of int, name string, strict bool) error {
	r, known := c.table.field(of, name)
	if !known {
		r.to = none
	}
	switch p.shape() {
	case scalar, replaced:
		if known {
			return fmt.Errorf("%s has nothing to merge", path)
		}
		return nil
	case merged:
		_, keys := p.schema.PatchStrategyAndKeyList()
		if !known || !r.list || !slices.Equal(r.keys, keys) {
			return fmt.Errorf("%s is a list with the keys %q", path, keys)
		}
		elements := p.elements()
		if elements.schema == nil {
			return fmt.Errorf("the elements of %s have no schema", path)
		}
		return c.walk(path+"[]", elements, r.to, strict)
	}
	if r.list {
		return fmt.Errorf("%s is no list", path)
	}
	if strict && !known && c.mistakable(p) {
		return fmt.Errorf("%s may hold an object of another kind", path)
	}
	return c.walk(path, p, r.to, strict)
}

// mistakable tells whether a value that the API accepts could look like another object, with fields to merge.
func (c comparison) mistakable(p place) bool {
	if p.shape() == open {
		return true
	}
	names := p.names()
	if !slices.Contains(names, "apiVersion") || !slices.Contains(names, "kind") {
		return false
	}
	return slices.ContainsFunc(names, func(name string) bool {
		return p.field(name).shape() != scalar && c.isRootField(name)
	})
}

func (c comparison) isRootField(name string) bool {
	for _, of := range c.roots {
		if _, found := c.table.field(of, name); found {
			return true
		}
	}
	return false
}
