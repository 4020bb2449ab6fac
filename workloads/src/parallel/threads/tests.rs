use std::thread;
use std::time::Duration;

use super::*;

/// Runs `body` on every rank; results in the order of the ranks.
fn on_ranks<T: Send>(ranks: usize, body: impl Fn(&ThreadRank) -> T + Sync) -> Vec<T> {
    let body = &body;
    thread::scope(|scope| {
        let threads: Vec<_> =
            thread_ranks(ranks, false).into_iter().map(|rank| scope.spawn(move || body(&rank))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn values(rank: usize, count: usize) -> Vec<f32> {
    (0..count).map(|at| ((at * 7 + rank * 13) % 101) as f32 * 0.37 - rank as f32).collect()
}

#[test]
fn sums_are_those_of_all_ranks_and_the_same_bits_everywhere() {
    for ranks in 1..=5 {
        for count in [0, 1, 15, 16, 17, 1000, 3 * BLOCK + 5] {
            let sums = on_ranks(ranks, |rank| {
                let mut values = values(rank.rank(), count);
                rank.all_reduce(&mut values).unwrap();
                values
            });
            let expected: Vec<f32> =
                (0..count).map(|at| (0..ranks).fold(0.0, |sum, rank| sum + values(rank, count)[at])).collect();
            assert!(sums.iter().all(|sum| *sum == expected), "{ranks} ranks, {count} values");
        }
    }
}

#[test]
fn a_broadcast_gives_everybody_the_roots_values_and_a_gather_everybodys() {
    let heard = on_ranks(3, |rank| {
        let mut own = values(rank.rank(), 40);
        rank.broadcast(1, &mut own).unwrap();
        (own, rank.gather(0.1 * rank.rank() as f64).unwrap())
    });
    for (own, gathered) in heard {
        assert_eq!(own, values(1, 40));
        assert_eq!(gathered, [0.0, 0.1, 0.2]);
    }
}

#[test]
fn values_are_received_in_the_order_of_sending() {
    let heard = on_ranks(2, |rank| {
        let other = 1 - rank.rank();
        for count in [3, 0, 5] {
            rank.send(other, &values(rank.rank(), count)).unwrap();
        }
        let mut into = Vec::new();
        [3, 0, 5].map(|_| {
            rank.receive(other, &mut into).unwrap();
            into.clone()
        })
    });
    assert_eq!(heard[0], [3, 0, 5].map(|count| values(1, count)));
    assert_eq!(heard[1], [3, 0, 5].map(|count| values(0, count)));
}

#[test]
fn groups_of_a_group_work_side_by_side() {
    let sums = on_ranks(4, |rank| {
        let pair = rank.split(rank.rank() % 2).unwrap();
        let again = rank.split(0).unwrap();
        let mut sum = [rank.rank() as f32];
        pair.all_reduce(&mut sum).unwrap();
        (pair.rank(), pair.ranks(), sum[0], again.ranks())
    });
    assert_eq!(sums, [(0, 2, 2.0, 4), (0, 2, 4.0, 4), (1, 2, 2.0, 4), (1, 2, 4.0, 4)]);
}

#[test]
fn who_waits_for_a_rank_that_left_is_told_which() {
    let told = on_ranks(3, |rank| {
        if rank.rank() == 2 {
            thread::sleep(Duration::from_millis(20));
            rank.leave("has failed");
            return String::new();
        }
        let error = if rank.rank() == 0 { rank.barrier() } else { rank.receive(2, &mut Vec::new()) };
        error.unwrap_err().to_string()
    });
    assert_eq!(told[..2], ["rank 2 has failed", "rank 2 has failed"]);
}

#[test]
fn what_was_sent_before_leaving_is_received() {
    let heard = on_ranks(2, |rank| {
        let mut into = Vec::new();
        match rank.rank() {
            0 => rank.send(1, &[4.0]).map(|()| rank.leave("has ended")).map(|()| into),
            _ => {
                thread::sleep(Duration::from_millis(20));
                rank.receive(0, &mut into).map(|()| into)
            }
        }
    });
    assert_eq!(heard[1], Ok(vec![4.0]));
}

#[test]
fn ranks_out_of_step_are_told_apart() {
    let told = on_ranks(2, |rank| match rank.rank() {
        0 => rank.all_reduce(&mut [0.0; 8]).unwrap_err().to_string(),
        _ => rank.barrier().unwrap_err().to_string(),
    });
    assert!(told.iter().all(|line| line.contains("rank 0 calls all-reduce of 8 values, rank 1 barrier")), "{told:?}");
    let told = on_ranks(2, |rank| rank.all_reduce(&mut vec![0.0; 8 + rank.rank()]).is_err());
    assert_eq!(told, [true, true]);
}

#[test]
fn who_leaves_is_missed_in_the_parts_too() {
    let told = on_ranks(3, |rank| {
        let part = rank.split(0).unwrap();
        if rank.rank() == 1 {
            thread::sleep(Duration::from_millis(20));
            rank.leave("has failed");
            return String::new();
        }
        part.barrier().unwrap_err().to_string()
    });
    assert_eq!(told, ["rank 1 has failed", "", "rank 1 has failed"]);
}

#[test]
fn others_go_on_without_one_that_has_ended() {
    let heard = on_ranks(3, |rank| {
        let mut into = Vec::new();
        let other = match rank.rank() {
            1 => return into,
            other => 2 - other,
        };
        thread::sleep(Duration::from_millis(20));
        rank.send(other, &[rank.rank() as f32]).unwrap();
        rank.receive(other, &mut into).unwrap();
        assert!(rank.receive(1, &mut Vec::new()).is_err());
        into
    });
    assert_eq!(heard, [vec![2.0], vec![], vec![0.0]]);
}
