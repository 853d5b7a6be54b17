use super::super::tests::torus::Torus;
use super::*;
use phitwire::rng::Rng;

/// The distance from `start` to every node, by the nodes' neighbours.
fn hops(torus: &Torus, start: u32) -> BTreeMap<u32, u32> {
    let mut hops = BTreeMap::from([(start, 0)]);
    let mut queue = std::collections::VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        let far = hops[&node] + 1;
        for direction in Direction::ALL {
            if let Some(other) = torus.neighbour(node, direction)
                && !hops.contains_key(&other)
            {
                hops.insert(other, far);
                queue.push_back(other);
            }
        }
    }
    hops
}

#[test]
fn trees_of_random_sets_are_trees_of_the_smallest_height() {
    let shapes = [
        [2, 2, 2],
        [4, 2, 1],
        [3, 5, 2],
        [4, 4, 4],
        [5, 1, 1],
        [1, 1, 1],
    ];
    let mut rng = Rng::new(1, 0);
    let (mut forwarding, mut built, mut refused) = (0, 0, 0);
    for round in 0..600 {
        let mut torus = Torus::new(shapes[round % shapes.len()]);
        let broken = rng.below(3) * u64::from(torus.nodes()) * 3 / 4;
        torus.break_some(broken, &mut rng);
        let count = 1 + rng.below(torus.nodes().into()) as usize;
        let set = torus.some_nodes(count, &mut rng);
        let neighbour = |node, direction| torus.neighbour(node, direction);
        let from_first = hops(&torus, *set.iter().min().expect("a participant"));
        let tree = match SpanningTree::build(&set, neighbour) {
            Ok(tree) => tree,
            Err(error) => {
                let lost = set.iter().filter(|node| !from_first.contains_key(node));
                let expected = SpanningError::NotConnected {
                    from: *set.iter().min().expect("a participant"),
                    to: *lost.min().expect("a participant out of reach"),
                };
                assert_eq!(error, expected);
                refused += 1;
                continue;
            }
        };
        built += 1;
        let shape = check(tree.registers(), neighbour);
        assert_eq!(shape, Ok((tree.root(), tree.height())));
        let smallest = from_first.keys().map(|&root| {
            let hops = hops(&torus, root);
            set.iter()
                .map(|node| hops[node])
                .max()
                .expect("a participant")
        });
        assert_eq!(Some(tree.height()), smallest.min());
        let locals: BTreeSet<u32> = (tree.registers())
            .filter(|(_, register)| register.children().contains(Port::Local))
            .map(|(node, _)| node)
            .collect();
        assert_eq!(locals, set.iter().copied().collect());
        assert_eq!(tree.links(), tree.registers().count() - 1);
        forwarding += tree.registers().count() - locals.len();
    }
    assert!(
        built > 400 && refused > 20 && forwarding > 100,
        "{built} {refused} {forwarding}"
    );
}

#[test]
fn links_that_work_one_way_only_are_not_used() {
    let neighbour = |node: u32, direction| match (node, direction) {
        (0, Direction::PlusX) => Some(1),
        (1, Direction::MinusX) => Some(2),
        _ => None,
    };
    let error = SpanningTree::build(&[1, 0], neighbour);
    assert_eq!(error, Err(SpanningError::NotConnected { from: 0, to: 1 }));
    assert_eq!(
        SpanningTree::build(&[], neighbour),
        Err(SpanningError::NoParticipants)
    );
    let alone = SpanningTree::build(&[7, 7], neighbour).expect("one participant");
    assert_eq!((alone.root(), alone.height(), alone.links()), (7, 0, 0));
    assert_eq!(alone.register(0), TreeRegister::UNUSED);
}

#[test]
fn a_root_can_be_chosen() {
    let torus = Torus::new([4, 4, 4]);
    let neighbour = |node, direction| torus.neighbour(node, direction);
    let tree = SpanningTree::build_from(63, &[0, 1], neighbour).expect("a tree");
    assert_eq!((tree.root(), tree.height(), tree.links()), (63, 4, 4));
    assert_eq!(check(tree.registers(), neighbour), Ok((63, 4)));
    assert!(!tree.register(63).children().contains(Port::Local));
    // One of two paths to the root leads through a router that is needed anyway.
    let plane = Torus::new([4, 4, 1]);
    let neighbour = |node, direction| plane.neighbour(node, direction);
    for between in [1, 4] {
        let tree = SpanningTree::build_from(0, &[between, 5], neighbour).expect("a tree");
        assert_eq!((tree.height(), tree.links()), (2, 2));
    }
    let error = SpanningTree::build_from(9, &[], neighbour);
    assert_eq!(error, Err(SpanningError::NoParticipants));
}

/// Each possible fault of registers is reported.
#[test]
fn faults_of_registers_are_named() {
    let torus = Torus::new([8, 1, 1]);
    let neighbour = |node, direction| torus.neighbour(node, direction);
    let (plus, minus) = (Direction::PlusX, Direction::MinusX);
    let register = |children: &[Port], parent| {
        TreeRegister::new(children.iter().copied().collect(), parent).expect("a register")
    };
    let root = register(&[Port::Local, Port::Link(plus)], None);
    let leaf = register(&[Port::Local], Some(minus));
    let inner = register(&[Port::Link(plus)], Some(minus));
    let judge = |registers: &[(u32, TreeRegister)]| check(registers.iter().copied(), neighbour);
    assert_eq!(judge(&[(0, root), (1, leaf)]), Ok((0, 1)));
    assert_eq!(judge(&[(0, root), (1, inner), (2, leaf)]), Ok((0, 2)));
    assert_eq!(judge(&[]), Err(TreeFault::NoRoot));
    assert_eq!(judge(&[(1, leaf)]), Err(TreeFault::NoRoot));
    assert_eq!(
        judge(&[(0, root), (1, root)]),
        Err(TreeFault::TwoRoots(0, 1))
    );
    let child = TreeFault::Child {
        node: 0,
        direction: plus,
    };
    assert_eq!(judge(&[(0, root)]), Err(child));
    let parent = TreeFault::Parent {
        node: 5,
        direction: minus,
    };
    assert_eq!(judge(&[(0, root), (1, leaf), (5, leaf)]), Err(parent));
    // A ring of four in which each node has the next as its child.
    let ring = Torus::new([4, 2, 1]);
    let apart = register(&[Port::Local], None);
    let circle = (0..4).map(|node| (node, inner)).chain([(4, apart)]);
    let found = check(circle, |node, direction| ring.neighbour(node, direction));
    assert_eq!(found, Err(TreeFault::Loop(0)));
}
