package search

// stopWords say nothing of a tool.
const stopWords = `a an the this that these those it its and or but if of to in on at by for from with without into
as is are was were be been being do does did can could will would should may might must i me my we our you your
he she they them their there here which who what when where how why not no nor so than then too very just
please want need like use using used via tool tools mcp such any some other each per`

// vagueWords are in many a request, and say little of what is wanted.
const vagueWords = `make get put take turn give go set bring keep do have many much more most less few several all every
last next new old first current now today see show look know tell let ask back up down out over off again together right
thing something somebody someone anything way able work`

// synonymWords are, a line each, words that mean much the same where somebody asks for
// a tool: first what is done, then what it is done to. A word may be in several lines.
const synonymWords = `
delete remove erase drop destroy discard purge clear trash bin wipe terminate
create add make new insert generate build compose set draw write
list show enumerate display browse view
find search lookup query seek locate look discover
get fetch read retrieve obtain load download see
update edit change modify alter adjust patch amend replace correct fix
send post publish deliver submit transmit notify tell inform
run execute start launch invoke trigger begin
stop cancel abort terminate kill end halt quit
copy duplicate clone fork replica
move rename relocate transfer
merge combine join unite together
compare diff difference
convert turn transform change
shrink compress zip archive pack
extract unzip unpack decompress
resize size small smaller large bigger scale shrink enlarge width height
undo revert rollback restore back previous earlier
rerun retry again repeat
mute silence quiet snooze suppress
assign give allocate delegate
grant allow permit share access permission right
translate translation language
summarize summarise summary digest shorten brief
transcribe transcript dictation caption subtitle
test check verify validate inspect examine
complete finish done resolve close
accept approve confirm agree
decline reject refuse deny
remember store save keep note memory
recall remember memory
explain describe meaning define definition mean
count number total sum amount quantity
sign signature certify
book reserve reservation order
refund reimburse return repay back
click press push tap
fill type enter
crop cut trim clip
switch turn toggle
open unlock
lock shut close
kick ban expel remove
upload put attach
log record track trace history journal
rotate replace renew refresh
suggest propose recommend advise
call phone ring dial telephone
hear listen play
clean vacuum tidy sweep hoover
email mail message inbox mailbox
message text sms chat talk conversation
picture image photo photograph screenshot snapshot
video movie film clip
song music track album jazz playlist
speech voice audio sound recording spoken aloud
text word written letter
folder directory
file document
page site website web url link
issue ticket bug defect
error exception failure crash
alert alarm warning incident outage monitor
person user member people account contact colleague guest attendee someone
customer client buyer shopper
team group channel
money payment charge pay invoice bill price
cost spend spent expense expenditure price
currency money dollar euro pound yen exchange
discount coupon percent rebate
stock share equity
stock inventory warehouse supply
paper article study publication scientific
meeting event appointment calendar invitation
hour time duration spent
vacation holiday leave absence office
weather forecast temperature rain sun wind outside snow
warm heat temperature thermostat cold heating
lamp light bulb
house home room
hotel accommodation lodging room hostel stay sleep night
restaurant food eat meal cafe
flight plane airplane airline fly
train railway station
taxi cab ride
road route direction navigate way path
place location address position somewhere coordinate
near nearby close around
repository repo project
commit change revision
workflow pipeline ci build
review reviewer feedback
database table sql
spreadsheet sheet excel worksheet
chart graph plot diagram
slide presentation deck
task todo job
machine server instance host vm computer
process program application
container docker pod
cloud aws infrastructure
password secret credential key
label tag category
answer reply respond comment response
reminder note memo
spell grammar mistake typo
news headline
height elevation altitude
pollution air smog
question query
`
