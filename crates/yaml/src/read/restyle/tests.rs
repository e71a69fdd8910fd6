use tree::Budget;

use super::*;

fn change(text: &str, change: impl FnOnce(&mut Node)) -> String {
    let budget = Budget::default();
    let before = crate::read::node(text, &budget).unwrap().unwrap();
    let mut after = before.clone();
    change(&mut after);
    restyled(text, &before, &after, &budget).unwrap()
}

fn set(node: &mut Node, path: &[&str], text: &str) {
    let scalar = node.pointer_mut(path).unwrap().as_scalar_mut().unwrap();
    scalar.tag = Some(scalar.kind());
    scalar.text = text.into();
}

#[test]
fn restyled_keeps_styles_and_renews_layout() {
    let text = "\
a:
    b: \"quoted\"
    c: 'single'
z: {f: [1,2]}

q: |
  lit
l:
  - x
  - 'y'
f: &anc {k: 1}
g: *anc
m: {<<: *anc, own: 1}
h: !!str 5
i: !tag v
o: \"\"
s:
t: yes
u: é
w: >-
  folded
  text
x: >
  one
  two

  three
y: {a: b:c:d, e: }
";
    let expected = "\
a:
  b: \"quoted\"
  c: 'new'
z: {f: [1, 2]}
q: |
  lit
l:
- x
- 'y'
f: &anc {k: 1}
g: *anc
m: {!!merge <<: *anc, own: 1}
h: !!str 5
i: !tag v
o: \"\"
s:
t: yes
u: é
w: >-
  folded text
x: >
  one two

  three

y: {a: 'b:c:d', e: ''}
";
    assert_eq!(change(text, |node| set(node, &["a", "c"], "new")), expected);
}

#[test]
fn restyled_keeps_the_type_of_changed_scalars() {
    let text = "i: 1\ns: text\nq: '1'\nf: 1.5\nb: true\nn: null\nl: |\n  x\n";
    let changed = change(text, |node| {
        for key in ["i", "s", "q", "f", "b", "n", "l"] {
            set(node, &[key], "7");
        }
    });
    let expected = "i: 7\ns: \"7\"\nq: '7'\nf: !!float 7\nb: !!bool 7\nn: !!null 7\nl: |-\n  7\n";
    assert_eq!(changed, expected);
    let lines = change(text, |node| set(node, &["s"], "a\nb\n"));
    assert!(lines.contains("s: |\n  a\n  b\n"), "{lines}");
    let lines = change("a: {s: text}\n", |node| set(node, &["a", "s"], "x\ny"));
    assert_eq!(lines, "a: {s: \"x\\ny\"}\n");
}

#[test]
fn restyled_adds_entries_and_items() {
    let text = "a:\n    b: 1\nl: [1]\n# end\n";
    let changed = change(text, |node| {
        node.get_mut("a").unwrap().set("new", Node::plain("7"));
        node.get_mut("l").unwrap().as_seq_mut().unwrap().push(Node::map());
        node.set("list", Node::seq(vec![Node::string("7"), Node::string("x")]));
    });
    assert_eq!(
        changed,
        "a:\n  b: 1\n  new: 7\nl: [1, {}]\nlist:\n- \"7\"\n- x\n# end\n"
    );
}

#[test]
fn restyled_replaces_nodes_of_another_kind() {
    let changed = change("a: {b: 1}\nc: 2\n", |node| {
        *node.get_mut("a").unwrap() = Node::plain("x");
        *node.get_mut("c").unwrap() = Node::seq(vec![Node::plain("y")]);
    });
    assert_eq!(changed, "a: x\nc:\n- y\n");
    let changed = change("a: {b: 'x', c: 2}\n", |node| {
        let map = [("d", Node::plain("7")), ("c", Node::seq(vec![Node::map()]))];
        *node.get_mut("a").unwrap() = map.into_iter().collect::<crate::node::Mapping>().into();
    });
    assert_eq!(changed, "a:\n  d: 7\n  c:\n  - {}\n");
    let changed = change("a: &x {b: 1}\nc: *x\n", |node| set(node, &["c", "b"], "2"));
    assert_eq!(changed, "a: &x {b: 1}\nc:\n  b: 2\n");
}

#[test]
fn restyled_keeps_comments_with_their_neighbours() {
    let text = "\
# head1
# head2

# head3
a:   # la
  # before b
  b: 1   #lb
  # after b

  # before c

  c: 2
  # foot c

d: 3
o:
    k: v
 # odd
p:
# low
    k: 1
r:
    l:
       - 1
       # l foot

       # l foot2

    # k foot
s: '#'

# x

t: 1 # line t
     # line t more
u: |
  # lit
# after lit
v: x
# tail1

# tail2
";
    let expected = "\
# head1
# head2

# head3
a: # la
  # before b
  b: 1 #lb
  # after b

  # before c
  c: 2
  # foot c
d: 4
o:
  k: v
  # odd
p:
  # low
  k: 1
r:
  l:
  - 1
  # l foot

  # l foot2

  # k foot
s: '#'
# x
t: 1 # line t
# line t more
u: |
  # lit
# after lit
v: x
# tail1

# tail2
";
    assert_eq!(change(text, |node| set(node, &["d"], "4")), expected);
}

#[test]
fn restyled_doubles_the_breaks_of_folded_blocks() {
    for (text, expected) in [
        ("a: >-\n  x y\n  z\nb: 1\n", "a: >-\n  x y z\nb: 2\n"),
        ("a: >\n  x\n\n  y\nb: 1\n", "a: >\n  x\n\n  y\n\nb: 2\n"),
        (
            "a: >-\n  x\n    more\n  y\nb: 1\n",
            "a: >-\n  x\n\n    more\n  y\nb: 2\n",
        ),
        ("l:\n- >\n  x\n- y\nb: 1 # c\n", "l:\n- >\n  x\n\n- y\nb: 2 # c\n"),
    ] {
        assert_eq!(change(text, |node| set(node, &["b"], "2")), expected, "{text}");
    }
}

#[test]
fn restyled_keeps_comments_of_list_items() {
    let text = "\
# doc

z: 0 # c
l: # list

  # head of item
  - name: x # nx

    # head port
    port: 1

  # head second

  - name: y
  -
    # in dash
    name: z
  - # empty
    k: v
  # last

  - end
";
    let expected = "\
# doc

z: 1 # c
l: # list
# head of item
- name: x # nx
  # head port
  port: 1
# head second
- name: y
- # in dash
  name: z
- # empty
  k: v
# last

- end
";
    assert_eq!(change(text, |node| set(node, &["z"], "1")), expected);
}

#[test]
fn restyled_drops_comments_of_replaced_nodes() {
    let text = "\
a: # why
  # head
  b: 1 # one
  # foot
# next
c: # open
# low

- 1
d: [1]
# not a foot

e: 2
";
    let expected = "a: x # why\n# next\nc: # open\n# low\n- 1\nd: [1]\n# not a foot\ne: 2\n";
    let changed = change(text, |node| *node.get_mut("a").unwrap() = Node::plain("x"));
    assert_eq!(changed, expected);
}

#[test]
fn restyled_keeps_comments_of_flow_collections() {
    let text = "m: {a: 1, # one\n  b: 2}\nn: 1\n";
    assert_eq!(
        change(text, |node| set(node, &["n"], "2")),
        "m: {a: 1, b: 2} # one\nn: 2\n"
    );
}
