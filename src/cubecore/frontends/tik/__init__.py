"""TIK programs: modules of the vendor's names, traced into program trees."""
