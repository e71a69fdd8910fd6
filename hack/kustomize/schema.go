package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// anyName stands for the keys of a map that the schema describes by additionalProperties.
const anyName = "*"

// shape is what a merge can meet at a place.
type shape int

const (
	// scalar: nothing is below, whatever the schema says.
	scalar shape = iota
	// replaced: a list without strategy. It is replaced as a whole, so nobody looks at its elements.
	replaced
	// merged: a list whose elements are merged.
	merged
	// object: fields or keys with schemas of their own.
	object
	// open: anything. Such a place must be known, since at an unknown one a merge takes the schema of the apiVersion and
	// kind that it finds there.
	open
)

// place is a schema with the name of its definition, or of the field that holds it.
type place struct {
	id     string
	schema *openapi.ResourceSchema
}

// root is an apiVersion and kind with a schema, and the name of its definition.
type root struct {
	yaml.TypeMeta
	definition string
}

// roots gives every root, sorted.
func roots() []root {
	var all []root
	for name, definition := range openapi.Schema().Definitions {
		kinds, _ := definition.Extensions["x-kubernetes-group-version-kind"].([]any)
		for _, kind := range kinds {
			names := kind.(map[string]any)
			meta := yaml.TypeMeta{APIVersion: names["version"].(string), Kind: names["kind"].(string)}
			if group, _ := names["group"].(string); group != "" {
				meta.APIVersion = group + "/" + meta.APIVersion
			}
			all = append(all, root{meta, name})
		}
	}
	slices.SortFunc(all, func(a, b root) int { return compare(a.TypeMeta, b.TypeMeta) })
	return all
}

func (r root) place() place {
	return place{r.definition, openapi.SchemaForResourceType(r.TypeMeta)}
}

// names gives the fields that a schema knows, sorted; anyName first if it describes others, too.
func (p place) names() []string {
	var names []string
	for name := range p.schema.Schema.Properties {
		names = append(names, name)
	}
	if rest := p.schema.Schema.AdditionalProperties; rest != nil && rest.Schema != nil {
		names = append(names, anyName)
	}
	slices.Sort(names)
	return names
}

// field gives what kyaml answers for the schema of a field.
func (p place) field(name string) place {
	property, found := p.schema.Schema.Properties[name]
	if !found {
		property = *p.schema.Schema.AdditionalProperties.Schema
	}
	return place{identity(&property, p.id+"."+name), p.schema.Field(name)}
}

func (p place) elements() place {
	return place{identity(p.schema.Schema.Items.Schema, p.id+"[]"), p.schema.Elements()}
}

func identity(schema *spec.Schema, otherwise string) string {
	if reference := schema.Ref.String(); reference != "" {
		return strings.TrimPrefix(reference, "#/definitions/")
	}
	return otherwise
}

// shape judges as the merge of kyaml does, by the value that the API accepts at a place.
func (p place) shape() shape {
	schema := p.schema.Schema
	switch strings.Join(schema.Type, "|") {
	case "string", "integer", "number", "boolean":
		return scalar
	case "array":
		if strategy, _ := p.schema.PatchStrategyAndKeyList(); slices.Contains(strings.Split(strategy, ","), "merge") {
			return merged
		}
		return replaced
	}
	if len(p.names()) == 0 {
		return open
	}
	return object
}

// An edge leads from a type to one of its fields. keys is nil unless it is a merged list.
type edge struct {
	name string
	keys []string
	to   string
}

// graph is the part of the OpenAPI that a merge depends on: edges by the id of the place they begin at.
type graph map[string][]edge

func (g graph) add(from place) {
	if _, known := g[from.id]; known {
		return
	}
	g[from.id] = nil
	var edges []edge
	for _, name := range from.names() {
		field := from.field(name)
		switch field.shape() {
		case merged:
			_, keys := field.schema.PatchStrategyAndKeyList()
			elements := field.elements()
			g.add(elements)
			edges = append(edges, edge{name, keys, elements.id})
		case object:
			g.add(field)
			edges = append(edges, edge{name, nil, field.id})
		case open:
			edges = append(edges, edge{name, nil, ""})
		}
	}
	g[from.id] = edges
}

// prune removes the edges that lead nowhere.
func (g graph) prune() {
	useful := g.reaching(func(e edge) bool { return e.keys != nil || e.to == "" })
	for id, edges := range g {
		kept := edges[:0]
		for _, e := range edges {
			if e.to != "" && !useful[e.to] {
				e.to = ""
				if e.keys == nil {
					continue
				}
			}
			kept = append(kept, e)
		}
		g[id] = kept
	}
}

// reaching gives the places from which such an edge can be reached.
func (g graph) reaching(goal func(edge) bool) map[string]bool {
	found := map[string]bool{}
	for again := true; again; {
		again = false
		for id, edges := range g {
			if !found[id] && slices.ContainsFunc(edges, func(e edge) bool { return goal(e) || found[e.to] }) {
				found[id], again = true, true
			}
		}
	}
	return found
}

// classes tells which places are the same type: those whose fields have the same names, keys and types.
func (g graph) classes() map[string]string {
	class := map[string]string{}
	for count := 0; ; {
		next, distinct := map[string]string{}, map[string]string{}
		for _, id := range slices.Sorted(maps.Keys(g)) {
			var mark strings.Builder
			for _, e := range g[id] {
				fmt.Fprintf(&mark, "%s %q %t>%s;", e.name, e.keys, e.keys == nil, class[e.to])
			}
			if distinct[mark.String()] == "" {
				distinct[mark.String()] = id
			}
			next[id] = distinct[mark.String()]
		}
		class = next
		if len(distinct) == count {
			return class
		}
		count = len(distinct)
	}
}

// numbering is the graph as it is printed: the roots, and the types in the order of their numbers.
type numbering struct {
	graph
	class  map[string]string
	listed []root
	order  []string
	number map[string]int
}

func numbered(all []root) numbering {
	g := graph{}
	for _, root := range all {
		g.add(root.place())
	}
	g.prune()
	n := numbering{graph: g, class: g.classes(), number: map[string]int{}}
	// What holds no merged list is no object of a kustomization: lists of objects, options of requests.
	merging := g.reaching(func(e edge) bool { return e.keys != nil })
	for _, root := range all {
		if merging[root.definition] {
			n.listed = append(n.listed, root)
			n.visit(root.definition)
		}
	}
	for i := 0; i < len(n.order); i++ {
		for _, e := range g[n.order[i]] {
			n.visit(e.to)
		}
	}
	return n
}

func (n *numbering) visit(id string) {
	if _, known := n.number[n.class[id]]; id != "" && !known {
		n.number[n.class[id]] = len(n.order)
		n.order = append(n.order, n.class[id])
	}
}

// schemaFile prints what a merge asks the schema.
func schemaFile(from module) string {
	n := numbered(roots())
	var out strings.Builder
	out.WriteString(header("The part of the schema of Kubernetes that strategic merges need.", from))
	out.WriteString("use super::types::{Field, Type};\n\n/// The types by number.\npub(super) static TYPES: &[Type] = &[\n")
	for i, id := range n.order {
		fmt.Fprintf(&out, "    // %d: %s\n    Type { fields: &[\n", i, n.title(id))
		for _, e := range n.graph[id] {
			list, to := "None", "None"
			if e.keys != nil {
				list = "Some(&[" + quoted(e.keys) + "])"
			}
			if e.to != "" {
				to = fmt.Sprintf("Some(%d)", n.number[n.class[e.to]])
			}
			fmt.Fprintf(&out, "        Field { name: %q, list: %s, to: %s },\n", e.name, list, to)
		}
		out.WriteString("    ] },\n")
	}
	out.WriteString("];\n\n/// apiVersion, kind, and the number of its type; sorted.\npub(super) static ROOTS: &[(&str, &str, u16)] = &[\n")
	for _, root := range n.listed {
		fmt.Fprintf(&out, "    (%q, %q, %d),\n", root.APIVersion, root.Kind, n.number[n.class[root.definition]])
	}
	out.WriteString("];\n")
	return out.String()
}

// title names the definitions that are one type here.
func (n *numbering) title(id string) string {
	others := -1
	for _, of := range n.class {
		if of == id {
			others++
		}
	}
	if others == 0 {
		return id
	}
	return fmt.Sprintf("%s and %d like it", id, others)
}

func quoted(words []string) string {
	var all []string
	for _, word := range words {
		all = append(all, fmt.Sprintf("%q", word))
	}
	return strings.Join(all, ", ")
}
