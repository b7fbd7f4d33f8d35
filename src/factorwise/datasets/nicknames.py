"""Short and familiar forms of given names, from a list of our own."""

from __future__ import annotations

_FORMS = """
Abraham Abe, Albert Al, Alejandro Alex, Alessandra Sandra, Alessandro Sandro, Alexander Alex,
Alexandra Sasha, Alexandre Alex, Alexey Alyosha, Alfred Fred, Alfredo Fredo, Amanda Mandy,
Anastasia Nastya, Andrea Andy, Andreas Andi, Andrew Andy, Andrey Andrew, Angela Angie, Anthony Tony,
Antoni Tolek, Antonio Toni, Arnold Arnie, Arthur Art, Barbara Barb, Beatrice Bea, Benjamin Ben,
Bernard Bernie, Bernhard Bernd, Bradley Brad, Catherine Cathy, Charles Charlie, Charlotte Lotte,
Christian Chris, Christina Chris, Christine Chris, Christoph Chris, Christophe Chris, Christopher Chris,
Claudia Claudi, Cornelia Conny, Cristina Cris, Cynthia Cindy, Daniel Dan, David Dave, Deborah Debbie,
Dmitry Dima, Dimitrios Dimitris, Dominic Dom, Donald Don, Dorothy Dot, Douglas Doug, Eduardo Edu,
Edward Ed, Ekaterina Katya, Elena Lena, Elisabeth Lisa, Elizabeth Liz, Emanuel Manu, Enrique Quique,
Eugene Gene, Eva Evi, Fernando Nando, Florian Flo, Frances Fran, Francesca Franca, Francesco Franco,
Francisco Paco, Franklin Frank, Frederick Fred, Friedrich Fritz, Gabriel Gabe, Gabriele Gabi,
Geoffrey Geoff, Georgios Giorgos, Gerald Gerry, Gerhard Gerd, Giovanni Gianni, Giuseppe Beppe,
Gonzalo Gonza, Gregory Greg, Guillaume Guill, Guillermo Memo, Gustavo Gus, Harold Harry, Heinrich Heinz,
Henrik Henke, Henry Hank, Ignacio Nacho, Irina Ira, Isabel Isa, Isabelle Isa, Jacqueline Jackie,
Jacob Jake, James Jim, Janet Jan, Javier Javi, Jeffrey Jeff, Jeffery Jeff, Jennifer Jenny, Jeremy Jerry,
Jerome Jerry, Jessica Jess, Joanna Asia, Johannes Hans, John Jack, Jonathan Jon, Jorge Coque, Joseph Joe,
Joshua Josh, Juan Juanito, Judith Judy, Julien Jules, Katarzyna Kasia, Katherine Kate, Kathleen Kathy,
Kenneth Ken, Konstantinos Kostas, Krzysztof Krzysiek, Laurent Lolo, Lawrence Larry, Leonard Len,
Leonardo Leo, Louis Lou, Lucas Luke, Luigi Gino, Magdalena Magda, Manuel Manolo, Margaret Maggie,
Maria Mary, Marie Mary, Martin Marty, Massimo Max, Matthew Matt, Matthias Matze, Maximilian Max,
Michael Mike, Michel Mich, Miguel Mike, Mikhail Misha, Mohamed Mo, Mohammad Mo, Mohammed Mo,
Natalia Natasha, Nathalie Nath, Nathan Nate, Nicholas Nick, Nicolas Nico, Nikolaos Nikos, Olivier Oli,
Pamela Pam, Panagiotis Panos, Patricia Pat, Patrick Pat, Peter Pete, Philip Phil, Philippe Phil,
Phillip Phil, Pierre Pierrot, Rafael Rafa, Raymond Ray, Rebecca Becky, Ricardo Rick, Richard Dick,
Robert Bob, Roberto Berto, Roger Rog, Ronald Ron, Rosario Charo, Rudolf Rudi, Russell Russ, Samantha Sam,
Samuel Sam, Sandra Sandy, Sebastian Basti, Sergey Serge, Sergio Checo, Silvia Silvi, Stanley Stan,
Stefan Steve, Stefania Stefi, Stefano Ste, Stephanie Steph, Stephen Steve, Steven Steve, Susan Sue,
Svetlana Sveta, Tatiana Tanya, Theodore Ted, Theresa Terry, Thomas Tom, Timothy Tim, Tobias Tobi,
Ulrich Uli, Valentina Valya, Vasilios Vasilis, Veronica Vera, Victor Vic, Victoria Vicky, Vincent Vince,
Vincenzo Enzo, Vladimir Volodya, Walter Walt, Wilhelm Willi, William Bill, Wolfgang Wolf, Xavier Xavi,
Yevgeny Zhenya, Zachary Zach
"""

#: The familiar form of a given name.
NICKNAMES: dict[str, str] = {
    words[0]: words[1] for words in (pair.split() for pair in _FORMS.replace("\n", " ").split(","))
}
