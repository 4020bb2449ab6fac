//! Names of NCCL's operations, and sizes of its data types.

/// Operations by NCCL's names for them; the last one stands for all unknown ones.
const OPERATIONS: [(&str, &str); 13] = [
    ("AllReduce", "all-reduce"),
    ("AllGather", "all-gather"),
    ("ReduceScatter", "reduce-scatter"),
    ("Broadcast", "broadcast"),
    ("Reduce", "reduce"),
    ("Send", "send"),
    ("Recv", "receive"),
    ("SendRecv", "send and receive"),
    ("AlltoAll", "all-to-all"),
    ("AllToAll", "all-to-all"),
    ("Gather", "gather to one rank"),
    ("Scatter", "scatter from one rank"),
    ("", "other collective"),
];

/// Number of kinds of operations.
pub(super) const KINDS: usize = OPERATIONS.len();

/// The kind of the operation with this NCCL name.
pub(super) fn kind_from_name(function: &[u8]) -> usize {
    OPERATIONS.iter().position(|(name, _)| name.as_bytes() == function).unwrap_or(KINDS - 1)
}

/// gnntop's name for it.
pub(super) fn display_name(kind: usize) -> &'static str {
    OPERATIONS[kind.min(KINDS - 1)].1
}

/// Bytes of a value of this type; `None` if it is unknown.
pub(super) fn datatype_bytes(datatype: &[u8]) -> Option<u64> {
    match datatype.strip_prefix(b"nccl")? {
        b"Int8" | b"Uint8" | b"Float8e4m3" | b"Float8e5m2" => Some(1),
        b"Float16" | b"Bfloat16" => Some(2),
        b"Int32" | b"Uint32" | b"Float32" => Some(4),
        b"Int64" | b"Uint64" | b"Float64" => Some(8),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_operations_and_types_are_parsed() {
        assert_eq!(display_name(kind_from_name(b"AllReduce")), "all-reduce");
        assert_eq!(display_name(kind_from_name(b"Recv")), "receive");
        for unknown in [&b""[..], b"Invalid", b"allreduce"] {
            assert_eq!(display_name(kind_from_name(unknown)), "other collective");
        }
        assert_eq!(datatype_bytes(b"ncclBfloat16"), Some(2));
        for unknown in [&b""[..], b"nccl", b"Float32", b"Unknown"] {
            assert_eq!(datatype_bytes(unknown), None);
        }
    }
}
