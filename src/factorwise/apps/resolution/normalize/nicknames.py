"""Nicknames and short forms of first names, and the names they stand for.

A form of several names is left out if none of them is far more common than the others, such as Alex or Chris.
Names that are equivalent in different languages usually have different roots.
"""

from __future__ import annotations

# Each line is a name, followed by its short and other forms.
_FORMS = """
abigail abby abbie
abraham abe
agnes aggie
albert al bert bertie
alexander alec sandy aleksander alexandre sasha
alexandra alexa sandra
alfred alf alfie fred
alice allie
alison ali
amanda mandy
andrew andy drew
angela angie
ann anne annie anna nan nancy
anthony tony antony
antonio toni tonio
arthur art artie
barbara barb babs barbie
barnabas barney
bartholomew bart
beatrice bea trixie
benjamin ben benji benny
bernard bernie barney
brian bryan
catherine cathy cath kate katie kathy katherine kathryn catharine kit kitty katharine cathryn
cecilia cissy
charles charlie chuck chas charley
charlotte lottie
christina christine chrissy tina
christopher kit kris topher
clarence clare
clifford cliff
cynthia cindy
daniel dan danny
david dave davy
deborah deb debbie debra
dennis denny
dominic dom nick
donald don donnie donny
dorothy dot dottie dolly dora
douglas doug
edmund ed ned
edward eddie ted teddy ed ned eddy
edwin ed
eleanor ellie nell nellie eleanore ella
elizabeth liz lizzie beth betty bess betsy eliza libby lisa elisabeth elsie
emily em emmy
emma emmie
eugene gene
ferdinand ferdie
florence flo florrie flossie
frances fanny fran francie
francis frank frankie
francisco paco pancho
franklin frank
frederick fred freddie freddy fredrick rick frederic
gabriel gabe
geoffrey geoff jeff jeffrey jeffery jeffry
george georgie
gerald gerry jerry
gertrude gertie trudy
giovanni gianni nino
giuseppe beppe peppe
gregory greg gregg
guillermo memo
gwendolyn gwen
harold hal harry
harriet hattie
helen nell nellie helena
henry hank harry hal
herbert herb bert
hubert bert
ignacio nacho
irving irv
isaac ike
isabella isabel bella belle isabelle
jacob jake
jacqueline jackie
james jim jimmy jamie jas jem
jane janie jenny
janet jan
jean jeannie
jennifer jen jenny jenni
jeremiah jerry
jeremy jem
jessica jess jessie
jesus chuy
joan joanie
johannes hans
john jack johnny jon johnnie jno
jonathan jon jonny
joseph joe joey jos
jose pepe
josephine jo josie
joshua josh
judith judy
julia julie
katarina katja
kenneth ken kenny
lawrence larry laurie laurence
leonard len lenny leo
leslie les
lewis lew louis lou
lillian lil lily lilly
linda lindy
lucille lucy
ludwig lutz
luis lucho
madeline maddie
manuel manny manolo
margaret maggie meg peggy marge margie greta rita daisy madge margery
maria mitzi
martha marty mattie patty
martin marty
mary mamie molly polly may
matilda tilly mattie
matthew matt mat
maurice morris
maximilian max
maxwell max
melissa missy
michael mike mick mickey micky mikey
mikhail misha
mildred millie
mitchell mitch
mohammed mohamed muhammad mohammad mohamad muhammed md
montgomery monty
nathaniel nat nate nathan
nicholas nick nicky nicolas
nikolai kolya
norman norm
oliver ollie
pamela pam
patricia pat patsy patty tricia trish
patrick paddy pat
penelope penny
peter pete
philip phil phillip
priscilla cilla prissy
rachel rae
randolph randy
raymond ray
rebecca becky becca
reginald reg reggie
richard dick rick ricky rich richie
robert bob bobby rob robbie bert robby
roberta bobbie
roderick rod
rodney rod
roger rodge
ronald ron ronnie ronny
rosemary rosie
rudolph rudy rolf
russell russ
samantha sammie
samuel sam sammy
sarah sally sadie sara
sebastian seb
solomon sol
stanley stan
stephanie steph
stephen steve steven stevie
stuart stu stewart
susan sue susie suzy suzanne susannah
sylvester sly
teresa terry tess theresa terri
terence terry terrance
theodore theo teddy
thomas tom tommy thos
timothy tim timmy
ursula uschi
valerie val
vanessa nessa
victor vic
victoria vicky vicki tori
vincent vin vince vinnie
virginia ginny
vladimir vova volodya
walter walt wally
wilhelm willi willy
wilfred wilf
william bill billy will willie liam wm
winifred winnie
winston winnie
zachary zach zack
"""


def _roots() -> dict[str, str]:
    """Return the root of every form, by the first line with the form; a full name is no form of another."""
    roots: dict[str, str] = {}
    lines = [line.split() for line in _FORMS.strip().splitlines()]
    full = {line[0] for line in lines}
    for root, *forms in lines:
        for form in forms:
            if form not in full:
                roots.setdefault(form, root)
    return roots


_ROOTS = _roots()
KNOWN_FIRST_NAMES = frozenset(_ROOTS) | frozenset(_ROOTS.values())


def nickname_root(first: str) -> str:
    """Return the full name of a nickname; any other name is returned unchanged.

    >>> nickname_root("bill"), nickname_root("wei")
    ('william', 'wei')
    """
    return _ROOTS.get(first, first)
