"""Word lists for English mentions: pronouns, titles, gendered nouns, first names, verbs of speech.

The lists are short and hold frequent words. Attributes of other words stay unknown.
"""

from __future__ import annotations

from typing import NamedTuple

UNKNOWN = 0
SINGULAR, PLURAL = 1, 2
MASCULINE, FEMININE, NEUTER = 1, 2, 3
SUBJECT, OBJECT, POSSESSIVE, REFLEXIVE = 1, 2, 3, 4

NO_PRONOUN, FIRST, YOU, HE, SHE, IT, WE, THEY, WHO = range(9)


class Pronoun(NamedTuple):
    """The grammatical attributes of a pronoun: family, person, number, gender and case; 0 if ambiguous."""

    family: int
    person: int
    number: int
    gender: int
    case: int


def _pronouns() -> dict[str, Pronoun]:
    families = [
        (FIRST, 1, SINGULAR, UNKNOWN, "i i. i'm i'll i've i'd", "me", "my mine", "myself"),
        (YOU, 2, UNKNOWN, UNKNOWN, "you ye yeh thou ya y'all", "thee 'ee", "your yours yer thy thine", ""),
        (YOU, 2, SINGULAR, UNKNOWN, "", "", "", "yourself thyself yerself"),
        (YOU, 2, PLURAL, UNKNOWN, "", "", "", "yourselves"),
        (HE, 3, SINGULAR, MASCULINE, "he 'e he's he'd he'll", "him 'im", "his", "himself hisself"),
        (SHE, 3, SINGULAR, FEMININE, "she she's she'd she'll", "her", "hers", "herself"),
        (IT, 3, SINGULAR, NEUTER, "it 't it's", "", "its", "itself"),
        (WE, 1, PLURAL, UNKNOWN, "we we're we'll we've", "us", "our ours", "ourselves ourself"),
        (THEY, 3, PLURAL, UNKNOWN, "they they're they'd", "them 'em", "their theirs", "themselves"),
        (WHO, 3, UNKNOWN, UNKNOWN, "who that which where what whoever", "whom", "whose", ""),
    ]
    known = {}
    for family, person, number, gender, *cases in families:
        for case, words in enumerate(cases, SUBJECT):
            for word in words.split():
                known[word] = Pronoun(family, person, number, gender, case)
    return known


PRONOUNS = _pronouns()


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Pronouns that belong to none of the families of personal pronouns.
OTHER_PRONOUNS = _words(
    """this these those one ones both all some any none each either neither other others another
    everyone everybody everything someone somebody something anyone anybody anything nobody nothing
    several many most few here there"""
)


MASCULINE_TITLES = _words(
    """mr mr. mister sir lord king prince duke earl baron count monsieur m. master don signor herr father
    brother uncle reverend rev. rev fra squire messrs. messrs emperor pope bishop captain capt. capt colonel
    col. general gen. major sergeant lieutenant lieut. admiral judge padre esquire esq."""
)
FEMININE_TITLES = _words(
    """mrs mrs. miss ms ms. lady madam madame mme. mademoiselle mlle. queen princess duchess countess baroness
    aunt sister mother dame dona signora signorina frau fraulein empress mistress"""
)
OTHER_TITLES = _words(
    """dr dr. doctor professor prof. president senator sen. governor gov. secretary minister chancellor
    officer detective inspector justice saint st. st cousin ambassador commissioner coach"""
)
TITLES = MASCULINE_TITLES | FEMININE_TITLES | OTHER_TITLES

MASCULINE_NOUNS = _words(
    """man men boy boys gentleman gentlemen father fathers papa dad daddy son sons brother brothers uncle
    uncles husband husbands nephew nephews grandfather grandson grandpa king kings prince princes lord lords
    duke earl baron emperor sir monk monks priest priests friar bishop pope abbot widower bachelor fellow
    fellows chap lad lads guy guys bloke actor waiter policeman fireman fisherman sailor sailors soldier
    soldiers squire knight knights monsieur master butler footman groom bridegroom landlord clergyman parson
    vicar captain colonel general sergeant boyfriend stepfather godfather host hero schoolboy coachman
    huntsman salesman businessman spokesman chairman congressman nobleman mate baronet patriarch"""
)
FEMININE_NOUNS = _words(
    """woman women girl girls lady ladies mother mothers mamma mama mum mom mommy daughter daughters sister
    sisters aunt aunts auntie wife wives niece nieces grandmother granddaughter grandma queen queens princess
    princesses duchess countess baroness empress madam madame nun nuns abbess widow maid maids maiden maidens
    spinster actress waitress nurse governess mistress housekeeper heroine hostess landlady bride girlfriend
    stepmother godmother lass schoolgirl heiress dame damsel sweetheart housewife matron goddess witch
    seamstress policewoman spokeswoman businesswoman congresswoman"""
)
PLURAL_NOUNS = _words(
    """men women children people gentlemen wives brethren folk folks police feet teeth oxen mice lives
    relatives parents cattle clergy gentry fishermen policemen sportsmen countrymen workmen firemen seamen
    noblemen clergymen townspeople crew couple pair thousands hundreds millions dozens scores"""
)
SINGULAR_NOUNS_IN_S = _words(
    """boss glass class princess mistress actress hostess governess goddess duchess countess heiress waitress
    mattress fortress witness business press process address success loss cross grass dress moss mass pass
    bus gas lens virus canvas campus census chorus corpus series species news kiss miss abyss princess
    is was his this us yes thus always perhaps christmas james thomas charles"""
)
IRREGULAR_PLURALS = {
    "men": "man",
    "women": "woman",
    "children": "child",
    "people": "person",
    "gentlemen": "gentleman",
    "wives": "wife",
    "lives": "life",
    "knives": "knife",
    "wolves": "wolf",
    "thieves": "thief",
    "feet": "foot",
    "teeth": "tooth",
    "mice": "mouse",
    "policemen": "policeman",
    "fishermen": "fisherman",
    "countrymen": "countryman",
}

DEFINITE = _words("the this that these those yon yonder said")
DEMONSTRATIVE = _words("this that these those yon yonder such")
INDEFINITE = _words(
    """a an some any another no every each many several few certain one two three four five six seven eight
    nine ten eleven twelve twenty thirty forty fifty hundred thousand dozen numerous various other all both"""
)
SINGULAR_DETERMINERS = _words("a an this that every each another one either neither")
PLURAL_DETERMINERS = _words(
    """these those many several few both two three four five six seven eight nine ten eleven twelve twenty
    thirty forty fifty hundred thousand dozen numerous various all some most"""
)
POSSESSIVES = _words("my your his her its our their thy whose")
DETERMINERS = DEFINITE | INDEFINITE | POSSESSIVES

PREPOSITIONS = _words(
    """of in on at by for with from to into upon about above across after against along among around as before
    behind below beneath beside besides between beyond during except inside like near off onto outside over
    past round since through throughout till toward towards under until unto up down via within without
    amid amongst concerning regarding out"""
)
RELATIVES = _words("who whom whose which that where when whence wherein whereof")
CONJUNCTIONS = _words("and or nor & but yet")
AUXILIARIES = _words(
    """is are was were am be been being has have had having do does did will would shall should can could may
    might must ought 's 're 'm 've 'll 'd"""
)
BE_FORMS = _words("is are was were am be been being 's 're 'm become became becomes seemed seems remained")
ADVERBS = _words(
    """not n't never always still also now then only just quite very rather really already once soon often
    again perhaps indeed certainly evidently probably apparently too merely almost thus here there"""
)
CLAUSE_WORDS = _words(
    """that because when while if though although as who whom whose which where whether until before after
    since than and but or for so"""
)
FUNCTION_WORDS = (
    DETERMINERS
    | PREPOSITIONS
    | RELATIVES
    | CONJUNCTIONS
    | AUXILIARIES
    | ADVERBS
    | CLAUSE_WORDS
    | frozenset(PRONOUNS)
    | OTHER_PRONOUNS
)

SPEECH_VERBS = _words(
    """said says say asked asks ask replied replies reply answered answers answer cried cries cry exclaimed
    exclaims whispered whispers murmured murmurs muttered mutters shouted shouts returned returns added adds
    continued continues remarked remarks observed observes inquired inquires enquired enquires demanded
    demands repeated repeats declared declares began begins resumed resumes retorted retorts called calls
    suggested suggests responded responds rejoined rejoins interrupted interrupts pleaded pleads sighed sighs
    sobbed growled growls laughed laughs went goes thought thinks told tells explained explains announced
    announces insisted insists admitted admits agreed agrees protested protests urged urges stammered gasped
    screamed roared snapped ejaculated quoth pursued interposed assented echoed concluded broke commented
    argued warned begged ventured put spoke observed faltered grumbled bawled yelled chuckled persisted"""
)

WEEKDAYS = _words("monday tuesday wednesday thursday friday saturday sunday")
MONTHS = _words(
    """january february march april may june july august september october november december
    jan feb mar apr jun jul aug sept sep oct nov dec"""
)
TIME_TYPES = _words("TIM TIME DATE TIMEX")
COMPANY_WORDS = _words(
    """inc inc. corp corp. corporation company co co. ltd ltd. limited plc group holdings n.v. nv sa s.a. ag
    llc jr jr. sr sr."""
)

MASCULINE_NAMES = _words(
    """aaron abel abraham adam adrian alan albert alec alexander alfred ambrose amos andrew angus anthony
    antonio archibald archie arnold arthur august augustus barnaby bartholomew basil ben benedict
    benjamin bernard bert bill billy bob bobby boris brian bruce caleb carl carlos casper cecil charles
    charley charlie christian christopher clarence claude clement clifford clive conrad cornelius curtis
    cyril cyrus dan daniel david denis dennis derek dick dominic donald douglas duncan earl ebenezer ed
    eddie edgar edmund edward edwin eli elijah elliot emil enoch eric ernest ethan eugene evan ezra
    felix ferdinand francis francois frank franz fred freddy frederick gabriel geoffrey george gerald
    gilbert giles giovanni godfrey gordon graham gregory guy hal hamish hans harold harry harvey hector
    henri henry herbert herman hiram horace howard hubert hugh hugo humphrey ian ignatius ira isaac
    israel ivan jack jacob jacques jake james jason jasper jeff jeremiah jeremy jerome jerry jesse jim
    jimmy jock joe joel johann john johnny jonah jonas jonathan jose joseph joshua josiah juan jude
    julian julius justin karl keith ken kenneth kevin lambert lancelot larry laurence lawrence lemuel
    leo leon leonard leopold lewis lionel louis lucas lucien ludwig luis luke luther malcolm manuel
    marcus mark marmaduke marshall martin mathew matthew maurice max maximilian michael miguel mike
    miles mortimer moses napoleon nathan nathaniel ned neil nelson nicholas nick nigel noah noel norman
    oliver orlando oscar oswald otto owen pablo paddy patrick paul pedro percival percy peter phil
    philip phillip pierre pip quentin ralph ramon randolph raphael ray raymond reginald reuben richard
    rob robert roberto robin roderick rodney roger roland ronald rory roy rudolph rufus rupert sam
    samuel sandy saul sebastian septimus seth sherlock sidney sigmund silas simeon simon solomon stanley
    stephen steve steven stuart sydney ted terence theodore thomas tim timothy titus tobias toby tom
    tommy tony tristan tristram ulysses valentine vernon victor vincent virgil vladimir wallace walter
    washington wilfred wilhelm will william willie winston wolfgang zachary zeke"""
)
FEMININE_NAMES = _words(
    """abigail ada adela adelaide adele agatha agnes alexandra alice alma amanda amelia amy ana anastasia
    andrea angela angelica anita ann anna annabel anne annette annie antoinette antonia arabella audrey
    augusta aurora barbara beatrice becky belinda bella bernadette bertha bess bessie beth betsy betty
    blanche bridget camilla carla carlotta carmen carol caroline carrie catherine cathy cecilia cecily
    celeste celia charlotte christina christine clara clare clarissa claudia clementina constance cora
    cordelia cornelia cynthia daisy daphne deborah delia della diana dinah dolly dolores dora doris
    dorothea dorothy edith edna eileen elaine eleanor elena eliza elizabeth ella ellen elsa elsie emily
    emma esmeralda estella esther ethel eugenia eunice eva eve evelina eveline evelyn fanny felicia
    fiona flora florence frances francesca freda gabrielle georgiana georgina geraldine gertrude gladys
    grace greta gretchen gwendolen hannah harriet hazel heather helen helena henrietta hester hilda hope
    ida imogen ines irene iris isabel isabella isobel ivy jane janet jeanne jemima jennie jennifer jenny
    jessica jessie jill joan joanna jocelyn josephine joyce juana judith judy julia juliana juliet kate
    katharine katherine kathleen katie kitty laura lavinia leah lena leonora letitia lettie lilian
    lillian lily linda liza lizzie lois lola lottie louisa louise lucilla lucinda lucretia lucy lydia
    mabel madeleine maggie mamie margaret margery maria marian marianne marie marion marjorie martha
    mary mathilda matilda maud maude may meg melissa mercy mildred millicent millie minerva minnie
    miranda miriam moll molly monica muriel myra myrtle nan nancy naomi natalie natasha nell nellie
    nelly nettie nina nora norah olga olive olivia ophelia pamela patience patricia patty paula pauline
    pearl peggy penelope phoebe phyllis polly pollyanna priscilla prudence rachel rebecca rhoda roberta
    rosa rosalie rosalind rosamond rose rosemary rosie roxana ruth sadie sally salome samantha sara
    sarah selina sharon sheila sibyl silvia sonia sophia sophie stella susan susannah susie sybil sylvia
    tara teresa tess thelma theodora theresa tilly ursula valerie vanessa vera verity veronica victoria
    vida viola violet virginia vivian wendy wilhelmina winifred yvonne zoe"""
)
