"""Operations on ordered partitions: window functions and the first rows."""
