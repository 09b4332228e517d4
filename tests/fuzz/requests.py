"""Random requests of the command line."""

from fuzz.judge import judge
from fuzz.words import ALL_FLAGS, ALL_OPTIONS, FLAGS, OPTIONS, SHAPED, VERBS, WORDS


def try_requests(tally, folder, rng, count):
    """Try requests of random words; most options are those that the command has."""
    for _ in range(count):
        verb = rng.choice(SHAPED if rng.random() < 0.7 else VERBS)
        asked = [verb, *rng.choices(WORDS, k=rng.choice((0, 0, 1)))]
        if verb in SHAPED or verb == "sweep":
            most = 60 if verb in {"run", "time", "sweep"} else 3000
            for name in ("--m", "--n", "--k"):
                asked += [name, str(rng.randint(1, most))]
        theirs = rng.random() < 0.8
        options, flags = (OPTIONS[verb], FLAGS[verb]) if theirs else (ALL_OPTIONS, ALL_FLAGS)
        for name in rng.sample(options, min(rng.randrange(4), len(options))):
            asked += [name, rng.choice(WORDS)]
        asked += rng.sample(flags, min(rng.randrange(3), len(flags)))
        judge(tally, "random requests", asked, folder)
