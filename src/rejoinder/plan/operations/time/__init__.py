"""Operations on times: validity windows, sessions, latest rows, filters by the current time."""
